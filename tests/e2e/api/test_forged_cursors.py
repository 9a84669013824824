"""Forged cursors at every paged method."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from shared.rpc import cursor as cursors
from shared.rpc.catalogue import catalogue
from tests.e2e.tenant_isolation.case import OWNER
from tests.e2e.tenant_isolation.methods import CASES
from tests.helpers.api_client import ApiClient, make_key

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

PAGED = sorted(name for name, method in catalogue().methods.items() if "cursor" in method.fields)
FORGED = [
    *("WyJcdTAwMDAiXQ", "WyIiXQ", "WyJcdWQ4MDAiXQ", "e30", "Ww", "W10", "####", "\u00e9"),
    *(cursors.encode(*position) for position in [("\0", 0), ("", 0), ("\ud800", 0), ("x" * 2000,), ("x" * 2000, 0)]),
    *(
        cursors.encode(*position)
        for position in [(-1,), (10**40,), ("notification#\ud800", 0), ("notification#", 10**40)]
    ),
]


@pytest.fixture(scope="module")
def owner(guarded: KhoServer) -> ApiClient:
    return ApiClient(guarded, make_key(guarded.data, OWNER, "admin")["key"])


@pytest.mark.parametrize("method", PAGED)
def test_forged_cursor_is_an_invalid_parameter(owner: ApiClient, method: str) -> None:
    for case in CASES[method]:
        id_ = uuid4().hex
        params = case.params(case.make(owner, id_) or id_)
        if params.get("action") in ("create", "update", "delete"):
            continue
        # The digest of a cursor is not secret: the position is checked too.
        bound = [cursors.bind(forged, *_scope(method, params)) for forged in FORGED]
        for cursor in (FORGED[0], *bound):
            status, body = owner.direct(method, **params | {"cursor": cursor})
            assert (status, _fields(body)) == (400, ["cursor"]), (params, cursor)


def _scope(method: str, params: dict[str, Any]) -> tuple[Any, ...]:
    module = import_module(catalogue().methods[method].function.replace("-", ".", 1))
    return (*module.handler.method.params.model_validate(params).listing(method), OWNER)


def _fields(body: Any) -> list[str]:
    details = body["error"]["details"]
    return [each["field"] for each in details] if isinstance(details, list) else [str(details)]
