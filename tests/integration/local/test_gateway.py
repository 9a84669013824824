"""The local gateway accepts exactly what Lambda would."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from typing import Any

import pytest

from infra.local.gateway import CORS, CORS_MAX_AGE, Gateway, with_cors
from infra.local.template import FILE, document, load
from tests.helpers.function_double import FunctionDouble

TEMPLATE = load()


def answered(answer: bytes, body: bytes = b"", method: str = "GET", path: str = "/servers", **headers: str) -> int:
    """Return the status of a request if the function answers so."""
    sent = messages(answer, method, (), body, path, **{"content_type": "application/json"} | headers)
    status: int = sent[0]["status"]
    return status


def messages(
    answer: bytes,
    method: str = "GET",
    origins: tuple[str, ...] = (),
    body: bytes = b"",
    path: str = "/servers",
    **headers: str,
) -> list[Any]:
    """Return the ASGI messages of a request if the function answers so."""

    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    gateway = Gateway(
        load(),
        FunctionDouble(lambda: json.loads(answer)),
        authorizing=False,
        access_log=lambda *_: None,
        origins=origins,
    )
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "query_string": b"",
        "http_version": "1.1",
    }

    async def request() -> None:
        await with_cors(gateway, origins)(scope, receive, send)

    asyncio.run(request())
    gateway.close()
    return sent


def of_size(size: int) -> bytes:
    """Return a function's answer of so many bytes."""
    empty = json.dumps({"statusCode": 200, "headers": {}, "body": ""}).encode()
    return empty[:-2] + b"x" * (size - len(empty)) + empty[-2:]


@pytest.mark.parametrize(("size", "status"), [(6_291_456, 200), (6_291_457, 500)])
def test_response_limit_is_6_mb(size: int, status: int) -> None:
    answer = of_size(size)
    assert len(answer) == size
    assert answered(answer) == status


def test_request_event_limit_is_6_mb() -> None:
    assert answered(of_size(100), b"\\" * 3_145_728) == 413
    assert answered(of_size(100), b"\\" * 1000) == 200


def function_answer(body: str, content_type: str = "application/json") -> bytes:
    return json.dumps({"statusCode": 200, "headers": {"content-type": content_type}, "body": body}).encode()


@pytest.mark.parametrize("accepted", ["gzip", "br, gzip;q=0.5", "*", "GZIP, deflate"])
def test_large_answers_are_compressed_if_the_client_accepts_it(accepted: str) -> None:
    start, sent = messages(function_answer("x" * 1025), accept_encoding=accepted)
    headers = dict(start["headers"])
    assert (headers[b"content-encoding"], headers[b"vary"]) == (b"gzip", b"accept-encoding")
    assert int(headers[b"content-length"]) == len(sent["body"]) < 1025
    assert gzip.decompress(sent["body"]) == b"x" * 1025


@pytest.mark.parametrize(
    ("body", "content_type", "accepted"),
    [
        ("x" * 1024, "application/json", "gzip"),
        ("x" * 2000, "image/png", "gzip"),
        ("x" * 2000, "application/json", "gzip;q=0, br"),
        ("x" * 2000, "application/json", "identity"),
    ],
)
def test_other_answers_are_not_compressed(body: str, content_type: str, accepted: str) -> None:
    start, sent = messages(function_answer(body, content_type), accept_encoding=accepted)
    assert b"content-encoding" not in dict(start["headers"])
    assert sent["body"] == body.encode()


ORIGIN = "https://app.example.com"


def test_preflight_is_answered_for_configured_origins_alone() -> None:
    def preflight(origins: tuple[str, ...], origin: str) -> tuple[int, dict[bytes, bytes]]:
        requested = {"access_control_request_method": "POST", "access_control_request_headers": "authorization"}
        start, _ = messages(function_answer("{}"), "OPTIONS", origins, b"", origin=origin, **requested)
        return start["status"], dict(start["headers"])

    status, headers = preflight((ORIGIN,), ORIGIN)
    assert status == 200
    assert headers[b"access-control-allow-origin"] == ORIGIN.encode()
    assert b"authorization" in headers[b"access-control-allow-headers"]
    assert headers[b"x-correlation-id"]
    for origins, origin in (((ORIGIN,), "https://evil.example"), ((), ORIGIN)):
        status, headers = preflight(origins, origin)
        assert status >= 400
        assert b"access-control-allow-origin" not in headers


def test_pages_of_configured_origins_may_read_answers() -> None:
    start, _ = messages(function_answer("{}"), "GET", (ORIGIN,), origin=ORIGIN)
    headers = dict(start["headers"])
    assert (start["status"], headers[b"access-control-allow-origin"]) == (200, ORIGIN.encode())
    assert b"x-correlation-id" in headers[b"access-control-expose-headers"]
    start, _ = messages(function_answer("{}"), "GET", (), origin=ORIGIN)
    assert b"access-control-allow-origin" not in dict(start["headers"])


def test_deployed_gateway_has_the_same_cors_settings() -> None:
    properties = document(FILE.read_text(encoding="utf-8"))["Resources"]["Api"]["Properties"]
    condition, deployed, otherwise = properties["CorsConfiguration"]["Fn::If"]
    assert (condition, otherwise) == ("WithCors", {"Ref": "AWS::NoValue"})
    assert deployed.pop("AllowOrigins") == {"Fn::Split": [",", {"Ref": "CorsOrigins"}]}
    assert deployed.pop("MaxAge") == CORS_MAX_AGE
    assert {name: tuple(values) for name, values in deployed.items()} == CORS


@pytest.mark.parametrize(
    "headers",
    [
        *(
            {"origin": origin}
            for origin in ("http://evil.example", "null", "file://", "http://[", "http://localhost.evil.example")
        ),
        *(
            {"host": host}
            for host in ("rebound.evil.example", "rebound.evil.example:8001", "127.0.0.1.evil.example", "")
        ),
        {"host": "evil.example", "origin": "http://evil.example"},
    ],
)
def test_foreign_pages_are_refused_at_every_route(headers: dict[str, str]) -> None:
    statuses = {
        (route.key, answered(of_size(100), b"{}", route.method, re.sub(r"{\w+}", "x", route.path), **headers))
        for route in TEMPLATE.routes[::8]
    }
    assert {status for _, status in statuses} == {403}, statuses


@pytest.mark.parametrize("origin", ["http://localhost:6274", "http://127.0.0.1:8001", "http://[::1]:8001"])
def test_local_pages_are_served(origin: str) -> None:
    assert answered(of_size(100), origin=origin, host="127.0.0.1:8001") == 200


def test_head_is_routed_as_get() -> None:
    assert answered(of_size(100), method="HEAD", path="/health") == 200
    assert answered(of_size(100), method="HEAD", path="/jsonrpc") == 405
