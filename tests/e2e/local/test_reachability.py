"""Reachability of what `kho serve` embeds: by no web page, and by no other user of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
import urllib3

from infra.local.data_folder import read_server_info
from infra.local.passed_socket import SCHEME
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from tests.helpers.kho_server import KhoServer

FOREIGN = "http://evil.example"
LIST_TABLES = {"x-amz-target": "DynamoDB_20120810.ListTables", "content-type": "application/x-amz-json-1.0"}
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
)
PATHS = ("/", "/jsonrpc", "/mcp", "/research-agent/manage_collections", "/things/x/shadow", "/topics/x")

OTHER_USER = f"""
import encodings.idna, encodings.latin_1, email.parser, http.client, json, os, socket, stringprep, sys
addresses, store = json.loads(sys.argv[1])
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
answers = []
for host, port in addresses:
    for path in {PATHS!r}:
        connection = http.client.HTTPConnection(host, port, timeout={CEILING_SECONDS})
        try:
            connection.request("POST", path, b"{{}}", {LIST_TABLES | {"authorization": AUTHORIZATION}!r})
            response = connection.getresponse()
            answers.append([host, port, path, response.status, response.read().decode()])
        except (OSError, http.client.HTTPException) as error:
            answers.append([host, port, path, 0, repr(error)])
try:
    socket.socket(socket.AF_UNIX).connect(store)
    reached = True
except OSError:
    reached = False
print(json.dumps([answers, reached]))
"""


@pytest.fixture(params=["server", "guarded"])
def served(request: pytest.FixtureRequest) -> KhoServer:
    """Return each of the shared servers: open, and with keys."""
    running: KhoServer = request.getfixturevalue(request.param)
    return running


def listening(pid: int) -> set[tuple[str, int]]:
    """Return the TCP addresses on which a process and its descendants listen, as far as this process can connect."""
    found: set[tuple[str, int]] = set()
    for process in _descendants(pid):
        if Path(f"/proc/{process}/ns/net").readlink() != Path("/proc/self/ns/net").readlink():
            continue
        inodes = set()
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                inodes.add(target[len("socket:[") : -1])
        for name in ("tcp", "tcp6"):
            for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    address, port = fields[1].split(":")
                    found.add((_host(address), int(port, 16)))
    return found


def _descendants(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    return [pid, *(each for child in children for each in _descendants(child))]


def _host(address: str) -> str:
    if len(address) > 8:
        return "::1"
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(address)))


def test_no_web_page_is_answered_at_any_port(served: KhoServer) -> None:
    addresses = listening(served.process.pid)
    assert (urlsplit(served.address).hostname, urlsplit(served.address).port) in addresses
    for host, port in addresses:
        for path in PATHS:
            for headers in ({"host": f"{host}:{port}"}, {"host": f"rebound.evil.example:{port}"}):
                status, names, body = _page_request("OPTIONS", host, port, path, headers | _preflight())
                assert (status >= 300 or not status, _grants(names)) == (True, []), (port, path, body)
                for request in (LIST_TABLES, {"content-type": "application/json"}, {"content-type": "text/plain"}):
                    status, names, body = _page_request("POST", host, port, path, headers | request)
                    assert (status >= 300 or not status, _grants(names)) == (True, []), (port, path, body)


def _preflight() -> dict[str, str]:
    wanted = "authorization,x-amz-target,x-amz-date,content-type"
    return {"access-control-request-method": "POST", "access-control-request-headers": wanted}


def _grants(names: list[str]) -> list[str]:
    return [name for name in names if name.lower().startswith("access-control-")]


def _page_request(method: str, host: str, port: int, path: str, headers: dict[str, str]) -> tuple[int, list[str], str]:
    """Send a request as a browser does for a foreign page. Return status 0 if no HTTP is spoken there."""
    pool = urllib3.HTTPConnectionPool(host, port, retries=False, timeout=CEILING_SECONDS)
    sent = {"origin": FOREIGN, "authorization": AUTHORIZATION} | headers
    try:
        response: Any = pool.request(method, path, body=b"{}" if method == "POST" else None, headers=sent)
    except urllib3.exceptions.HTTPError as error:
        return 0, [], repr(error)
    return response.status, list(response.headers), response.data.decode("utf-8", "replace")


def test_no_other_user_reaches_the_embedded_stores(served: KhoServer) -> None:
    info = read_server_info(served.data)
    assert info
    store = urlsplit(info["store_url"])
    if store.scheme != SCHEME:
        assert "Programs of other users of this machine can connect" in served.printed()
        return
    file = unquote(store.path)
    assert Path(file).stat().st_mode & 0o077 == 0
    arguments = json.dumps([sorted(listening(served.process.pid)), os.path.relpath(file, served.data)])
    process = subprocess.run(
        [sys.executable, "-c", OTHER_USER, arguments], cwd=served.data, capture_output=True, text=True, check=True
    )
    answers, reached = json.loads(process.stdout)
    assert answers
    assert [each for each in answers if "TableNames" in each[4] or "healthy" in each[4]] == []
    assert [each for each in answers if 0 < each[3] < 300 and "error" not in json.loads(each[4])] == []
    assert reached is (os.getuid() != 0), "only the server's own user may open the socket"
