"""The suite's scenarios for authorization servers, against `kho serve --auth required`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from infra.local.sockets import listen
from tests.helpers.api_client import make_key
from tests.helpers.kho_server import KhoServer
from tests.helpers.oauth_person import Person

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(suite: Sequence[str]) -> int:
    """Run the scenarios with a person who signs in with a key. Return the suite's exit code."""
    print("\n=== authorization server", flush=True)
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    with (
        tempfile.TemporaryDirectory(prefix="kho-conformance-") as folder,
        KhoServer(Path(folder) / "data", "--auth", "required") as server,
    ):
        key = make_key(server.data, "conformance", "writer")["key"]
        person = Person(server)
        registered = person.client.register(redirect_uris=[f"http://127.0.0.1:{port}/callback"])
        settings = {"--url": server.address, "--client-id": registered.json["client_id"], "--port": str(port)}
        options = [each for option in settings.items() for each in option]
        command = [*suite, "authorization", *options, "--resource", f"{server.address}/mcp"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
            assert process.stdout
            for line in process.stdout:
                print(line, end="", flush=True)
                if line.startswith(f"{server.address}/oauth/authorize?"):
                    server.http.request("GET", person.sign_in(line.strip(), key).headers["location"])
    return process.returncode
