"""A call whose worker has died is answered in the format of its endpoint."""

from __future__ import annotations

import json
from http.client import HTTPResponse
from io import BytesIO
from typing import Any

import pytest

from infra.local.workers.lost_call import lost_response, summary


class _Received:
    """A socket from which a response was received."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> BytesIO:
        """Return the response."""
        return BytesIO(self._data)


def answered(path: str, body: Any = None, *, has_begun: bool, headers: bytes = b"") -> tuple[HTTPResponse, Any]:
    """Return the response to a request, and its body."""
    note = b"POST %b\n%b\n%b" % (path.encode(), headers, json.dumps(body).encode())
    response = HTTPResponse(_Received(lost_response(note, has_begun=has_begun)))  # type: ignore[arg-type]
    response.begin()
    return response, json.loads(response.read())


def test_call_that_had_begun_may_have_happened() -> None:
    response, body = answered("/memory-server/memory/add_message", has_begun=True)
    assert (response.status, response.getheader("retry-after")) == (504, None)
    assert body["error"]["code"] == "OUT_OF_TIME"
    assert "may or may not have taken effect" in body["error"]["guidance"]
    assert response.getheader("connection") == "close"


def test_call_that_had_not_begun_can_be_repeated() -> None:
    response, body = answered("/memory-server/memory/add_message", has_begun=False)
    assert (response.status, response.getheader("retry-after")) == (503, "1")
    assert body["error"]["message"].endswith("nothing was done.")
    assert body["error"]["guidance"] == "Call again."


@pytest.mark.parametrize("has_begun", [False, True])
def test_formats_of_endpoints(has_begun: bool) -> None:
    call = {"jsonrpc": "2.0", "id": 17, "method": "memory-server/memory/add_message"}
    assert answered("/jsonrpc", call, has_begun=has_begun)[1]["id"] == 17
    assert answered("/actions", {"request_id": "r1"}, has_begun=has_begun)[1]["request_id"] == "r1"
    assert answered("/recall-kit/query%5Fexperiences", {}, has_begun=has_begun)[1]["success"] is False


def test_correlation_id_is_the_callers() -> None:
    response, _ = answered("/jsonrpc", has_begun=True, headers=b"x-correlation-id: abc-123456\n")
    assert response.getheader("x-correlation-id") == "abc-123456"


def test_request_without_a_note_is_answered_too() -> None:
    assert lost_response(b"", has_begun=False).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")


def test_summary_names_verb_and_path() -> None:
    assert summary(b"POST /a%20b\nx-correlation-id: 1\n\n{}") == "POST /a b"
