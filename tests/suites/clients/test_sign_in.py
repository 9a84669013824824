"""mcp-remote signs a person in by OAuth, and needs no second sign-in."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import urllib3

from tests.helpers.api_client import make_key
from tests.helpers.environment import ORIGINAL_ENVIRONMENT
from tests.helpers.kho_server import KhoServer
from tests.helpers.oauth_person import Person
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.clients.clients import mcp_remote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PAGE: Final = re.compile(r"http\S+/oauth/authorize\?\S+")


class Bridge:
    """mcp-remote between a pipe and an endpoint."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def printed(self) -> str:
        """Return what it has printed for the person."""
        return self._log.read_text(encoding="utf-8")

    def page(self) -> str:
        """Return the address of the page on which it asks the person to sign in."""
        until(lambda: _PAGE.search(self.printed()))
        match = _PAGE.search(self.printed())
        assert match
        return match[0]

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a request."""
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert self._process.stdout
        answer = json.loads(self._process.stdout.readline())
        assert "result" in answer, answer
        return answer["result"]

    def greet(self) -> None:
        """Do the handshake of MCP."""
        client = {"name": "a-client", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


@contextmanager
def bridge(url: str, folder: Path, name: str) -> Iterator[Bridge]:
    """Run it inside the block, with its memory in the folder."""
    variables = {"PATH": ORIGINAL_ENVIRONMENT["PATH"], "HOME": str(folder), "BROWSER": "none"}
    with (folder / name).open("w") as log:
        process = subprocess.Popen(
            mcp_remote(url), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=variables
        )
        with process:
            try:
                yield Bridge(process, folder / name)
            finally:
                process.kill()


def test_person_signs_in_once(tmp_path: Path) -> None:
    """A person allows mcp-remote on Kho's page; it lists and calls as a writer, and later without asking."""
    with KhoServer(tmp_path / "data", "--auth", "required") as server:
        key = make_key(server.data, "acme", "writer")["key"]
        with bridge(f"{server.address}/mcp", tmp_path, "first") as first:
            callback = Person(server).sign_in(first.page(), key).headers["location"]
            until(lambda: _opened(callback))
            first.greet()
            names = {each["name"] for each in first.ask("tools/list")["tools"]}
            assert "create_document" in names
            assert "device_tools_call" not in names, "an operator's tool"
        with bridge(f"{server.address}/mcp", tmp_path, "second") as second:
            second.greet()
            result = second.ask("tools/call", name="get_document", arguments={"document_id": "nope"})
            assert "list_children shows the documents that exist" in result["content"][0]["text"]
            assert not _PAGE.search(second.printed())


def _opened(callback: str) -> bool:
    """Open the address to which the person is led. It listens a moment after its page is printed."""
    with suppress(urllib3.exceptions.HTTPError):
        return urllib3.request("GET", callback, redirect=False, timeout=CEILING_SECONDS, retries=False).status == 200
    return False
