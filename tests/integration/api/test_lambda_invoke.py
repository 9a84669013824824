"""The deployed invocation path: endpoints call functions through Lambda's API, here a server on loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from shared.aws import lambda_client
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc import invocation
from shared.rpc.caller import LOCAL
from shared.rpc.errors import Conflict, Internal, KhoError, OutOfTime, TooManyRequests, Unavailable
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeLambda(BaseHTTPRequestHandler):
    """A server that answers invocations by function name."""

    invocations: list[tuple[str, Any]]
    traces: list[str | None]
    peers: list[Any]
    released: threading.Event

    def do_POST(self) -> None:
        name = self.path.split("/")[3]
        call = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.invocations.append((name, call))
        self.traces.append(self.headers["x-amzn-trace-id"])
        self.peers.append(self.client_address)
        match name.removeprefix("stack-"):
            case "echo":
                self.answer(200, {"result": call["params"]})
            case "workers-embed_texts" if self.path.endswith("/invocations?Qualifier=live"):
                self.answer(200, {"embeddings": call})
            case "last":
                self.answer(200, {"result": None}, connection="close")
            case "refusing":
                self.answer(200, {"error": Conflict("Taken.", code="ALREADY_EXISTS", details={"id": 1}).record()})
            case "crashing":
                self.answer(200, {"errorMessage": "secret trace"}, **{"X-Amz-Function-Error": "Unhandled"})
            case "busy" if len(self.invocations) == 3:
                self.answer(200, {"result": "at last"})
            case "throttled" | "busy":
                self.answer(429, {"message": "Rate"}, **{"x-amzn-errortype": "TooManyRequestsException"})
            case "broken":
                self.answer(500, {"message": "down"}, **{"x-amzn-errortype": "ServiceException"})
            case "slow":
                self.released.wait(CEILING_SECONDS)

    def answer(self, status: int, body: Any, **headers: str) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def invocations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    """Yield the invocations that reach Lambda while endpoints use its API."""
    FakeLambda.invocations, FakeLambda.traces, FakeLambda.peers, FakeLambda.released = [], [], [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeLambda)
    threading.Thread(target=server.serve_forever).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("KHO_FUNCTION_PREFIX", "stack")
    monkeypatch.setattr(lambda_client, "TIME_LIMIT", CEILING_SECONDS)
    monkeypatch.setattr(lambda_client, "_CONNECT_SECONDS", CEILING_SECONDS)
    monkeypatch.setattr(runtime, "functions", None)
    client = lambda_client.LambdaClient()
    monkeypatch.setattr(runtime, "lambda_client", lambda: client)
    config.cache_clear()
    yield FakeLambda.invocations
    FakeLambda.released.set()
    server.shutdown()
    server.server_close()
    config.cache_clear()


def call(function: str, params: Any = None) -> Any:
    return invocation.invoke(function, "server/method", params or {}, LOCAL, "correlation-1")


def test_invoke_reaches_the_named_function_with_the_caller(invocations: list[tuple[str, Any]]) -> None:
    assert call("echo", {"text": "Xin chào \x00"}) == {"text": "Xin chào \x00"}
    assert invocations == [
        (
            "stack-echo",
            {
                "method": "server/method",
                "params": {"text": "Xin chào \x00"},
                "caller": LOCAL.record(),
                "correlation_id": "correlation-1",
            },
        )
    ]


def test_invoke_propagates_the_trace(invocations: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
    call("echo")
    assert FakeLambda.traces == [trace]


def test_error_round_trip(invocations: list[tuple[str, Any]]) -> None:
    with pytest.raises(Conflict) as caught:
        call("refusing")
    assert (caught.value.code, caught.value.message, caught.value.details) == ("ALREADY_EXISTS", "Taken.", {"id": 1})


def test_internal_function_is_invoked_by_its_alias(invocations: list[tuple[str, Any]]) -> None:
    """Provisioned instances belong to the alias."""
    assert invocation.call_internal("workers-embed_texts:live", {"texts": ["Xin chào"]}) == {
        "embeddings": {"texts": ["Xin chào"]}
    }


@pytest.mark.parametrize("function", ["crashing", "throttled", "broken"])
def test_internal_function_that_fails_is_unavailable(invocations: list[tuple[str, Any]], function: str) -> None:
    with pytest.raises(Unavailable):
        invocation.call_internal(function, {})


def test_throttled_invocations_are_retried(invocations: list[tuple[str, Any]]) -> None:
    assert call("busy") == "at last"


def test_lasting_throttling_is_reported(invocations: list[tuple[str, Any]]) -> None:
    with pytest.raises(TooManyRequests) as refused:
        call("throttled")
    assert refused.value.details == {"retry_after_seconds": 1}
    assert len(invocations) == 3


@pytest.mark.parametrize(("seconds", "connections"), [(0.0, 2), (CEILING_SECONDS, 1)])
def test_a_connection_that_was_idle_too_long_is_not_reused(
    invocations: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch, seconds: float, connections: int
) -> None:
    monkeypatch.setattr(FakeLambda, "protocol_version", "HTTP/1.1")
    monkeypatch.setattr(lambda_client, "_MAX_IDLE_SECONDS", seconds)
    call("echo")
    call("last")
    assert len(set(FakeLambda.peers)) == connections


@pytest.mark.parametrize(
    ("function", "kind"),
    [("crashing", Internal), ("broken", Unavailable), ("slow", OutOfTime)],
)
def test_lambda_failures_are_mapped_and_not_retried(
    invocations: list[tuple[str, Any]], function: str, kind: type[KhoError], monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind is OutOfTime:
        monkeypatch.setattr(lambda_client, "TIME_LIMIT", 0.3)
    with pytest.raises(kind) as caught:
        call(function)
    assert "secret" not in str(caught.value.record())
    until(lambda: invocations)  # the server may record a call after its caller has given up
    assert len(invocations) == 1
