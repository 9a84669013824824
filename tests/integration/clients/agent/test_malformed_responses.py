"""research-agent's handling of malformed responses from servers and web pages."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from infra.clients.agent.backend import BackendError, RemoteBackend
from infra.clients.agent.web_fetch import fetch
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def _answering(status: int, body: bytes, content_type: str = "application/json") -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


ANSWERS: list[tuple[int, Any, int, str]] = [
    (413, {"message": "Request Too Long"}, 413, "TOO_LARGE"),
    (429, {"message": "Too Many Requests"}, 429, "TOO_MANY_REQUESTS"),
    (503, {"message": "Service Unavailable"}, -32000, "UNAVAILABLE"),
    (504, {"message": "Endpoint request timed out"}, -32000, "OUT_OF_TIME"),
    (200, [], -32000, "UNAVAILABLE"),
    (200, "no", -32000, "UNAVAILABLE"),
    (200, {}, -32000, "UNAVAILABLE"),
    (200, {"error": "boom"}, -32000, "UNAVAILABLE"),
    (200, {"error": {"message": "no code"}}, -32000, "UNAVAILABLE"),
]


@pytest.mark.parametrize(("status", "body", "code", "name"), ANSWERS)
def test_foreign_response_is_an_error_with_guidance(status: int, body: Any, code: int, name: str) -> None:
    with _answering(status, json.dumps(body).encode()) as endpoint, pytest.raises(BackendError) as refused:
        RemoteBackend(endpoint, "", CEILING_SECONDS).call("query_knowledge_base", {"query": "x"})
    assert (refused.value.code, refused.value.data["code"]) == (code, name)
    assert refused.value.data["guidance"]


@pytest.mark.parametrize("charset", ["undefined", "idna", "punycode", "utf-7", "unicode_escape", "hex", "none-such"])
def test_unknown_charset_falls_back_to_utf_8(charset: str) -> None:
    text = "Trà xanh \\ud800 +2AA-"
    with _answering(200, text.encode(), f"text/plain; charset={charset}") as url:
        assert fetch(url) == text


def test_page_is_decoded_in_its_charset() -> None:
    with _answering(200, "Küche".encode("latin-1"), "text/plain; charset=ISO-8859-1") as url:
        assert fetch(url) == "Küche"


def test_url_with_password_is_rejected_and_not_echoed() -> None:
    with pytest.raises(BackendError) as refused:
        fetch("http://ana:hunter2@127.0.0.1:1/page?a=b")
    assert "http://127.0.0.1:1/page?a=b" in str(refused.value)
    assert "hunter2" not in f"{refused.value} {refused.value.data}"


@pytest.mark.parametrize("url", ["http://[", "http://", "ftp://x/", "http://127.0.0.1:99999/", f"http://{'x' * 70}.y/"])
def test_invalid_url_is_an_unreadable_document(url: str) -> None:
    with pytest.raises(BackendError) as refused:
        fetch(url)
    assert (refused.value.code, refused.value.data["code"]) == (-32003, "DOCUMENT_UNREADABLE")


def test_address_that_refuses_is_told_in_words() -> None:
    with pytest.raises(BackendError, match=r"http://127\.0\.0\.1:9/ refuses connections") as refused:
        fetch("http://127.0.0.1:9/")
    assert refused.value.data["guidance"].startswith("Check the address.")
    with pytest.raises(BackendError, match="not a public address") as private:
        fetch("http://192.168.77.7/")
    assert private.value.data["guidance"].startswith("Only public addresses are fetched.")
