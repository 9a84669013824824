"""Lists have the same parameters of a page everywhere, and the same name for the next one."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest

from shared.rpc.catalogue import catalogue

OWN_CONTRACTS = {"memory-server/memory/get_all_messages", "memory-server/memory/get_old_messages"}
"""Answers that are whole unless a limit is given."""
SINGLE = {"memory-server/resources/read"}
"""A single thing that may be too large for one answer."""


def paged() -> list[str]:
    return [entry.name for entry in catalogue().methods.values() if "cursor" in entry.fields]


def _method(name: str) -> Any:
    return import_module(catalogue().methods[name].function.replace("-", ".")).handler.method


def test_lists_of_contracts_are_paged() -> None:
    assert len(paged()) > 10
    assert set(paged()) >= OWN_CONTRACTS | SINGLE


@pytest.mark.parametrize("name", paged())
def test_a_list_takes_limit_and_cursor_and_names_the_next_cursor(name: str) -> None:
    method = _method(name)
    schema = method.params.model_json_schema()["properties"]
    if name not in SINGLE:
        limit = json.dumps(schema["limit"])
        assert '"minimum": 1' in limit
        assert name in OWN_CONTRACTS or ('"maximum": 1000' in limit and schema["limit"]["default"] == 100)
    result = json.dumps(method.result.json_schema(mode="serialization"))
    assert '"next_cursor"' in result or '"nextCursor"' in result
