"""The local gateway accepts exactly what Lambda would."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from infra.local.gateway import Gateway
from infra.local.template import load
from shared.rpc.invoke import MAX_EVENT_BYTES

if TYPE_CHECKING:
    from infra.local.functions import Functions


def answered(answer: bytes, body: bytes = b"") -> int:
    """Return the status of GET /servers if the function answers so."""

    def functions(_name: str, _payload: bytes) -> bytes:
        return answer

    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    gateway = Gateway(load(), cast("Functions", functions), authorizing=False, access_log=lambda *_: None, threads=1)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/servers",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
        "http_version": "1.1",
    }
    asyncio.run(gateway(scope, receive, send))
    gateway.close()
    status: int = sent[0]["status"]
    return status


def of_size(size: int) -> bytes:
    """Return a function's answer of so many bytes."""
    empty = json.dumps({"statusCode": 200, "headers": {}, "body": ""}).encode()
    return empty[:-2] + b"x" * (size - len(empty)) + empty[-2:]


@pytest.mark.parametrize(("size", "status"), [(MAX_EVENT_BYTES, 200), (MAX_EVENT_BYTES + 1, 500)])
def test_response_limit_is_6_mb(size: int, status: int) -> None:
    answer = of_size(size)
    assert len(answer) == size
    assert answered(answer) == status


def test_request_event_limit_is_6_mb() -> None:
    assert answered(of_size(100), b"\\" * (MAX_EVENT_BYTES // 2)) == 413
    assert answered(of_size(100), b"\\" * 1000) == 200
