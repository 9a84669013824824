"""Requests in the gateway's event format: what is read of a body, and up to which size."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.http_events import HttpRequest
from shared.rpc.caller import Caller
from tests.helpers.mcp_events import event

CALLER = Caller("sub", frozenset({"writer"}), "tenant")
QUARTER_MIB = 256 * 1024


def request_of(size: int, **members: Any) -> HttpRequest:
    """Return a request whose body has this size."""
    body = json.dumps(members | {"fill": ""})
    return HttpRequest.from_event(event(body[:-2] + "x" * (size - len(body)) + body[-2:]))


def test_request_id_of_a_body_up_to_256_kib_is_read() -> None:
    assert request_of(QUARTER_MIB, request_id="r-1").request_id() == "r-1"
    assert request_of(QUARTER_MIB + 1, request_id="r-1").request_id() is None


def test_request_id_of_a_larger_body_that_was_read_is_known() -> None:
    request = request_of(QUARTER_MIB + 1, request_id="r-1")
    request.json(CALLER)
    assert request.request_id() == "r-1"


@pytest.mark.parametrize(
    ("request_id", "echoed"),
    [
        ("x" * 1024, True),
        ("", True),
        ("x" * 1025, False),
        ("\ud800", False),
        (1, False),
        (None, False),
        (["x"], False),
    ],
)
def test_request_id_is_echoed_if_it_is_text_of_at_most_1024_characters(request_id: Any, echoed: bool) -> None:
    body = json.dumps({"request_id": request_id})
    assert HttpRequest.from_event(event(body)).request_id() == (request_id if echoed else None)


@pytest.mark.parametrize("body", ["", "{", "[]", '"request_id"'])
def test_other_bodies_have_no_request_id(body: str) -> None:
    assert HttpRequest.from_event(event(body)).request_id() is None
