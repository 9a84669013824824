"""The image: built without Docker by the Dockerfile's own instructions, run as compose.yaml does."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from infra.local.sockets import listen
from tests.helpers.wait import CEILING_SECONDS, until
from tests.suites.container.dockerfile import Image
from tests.suites.container.root import Root
from tests.suites.package.installation import build_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = Image()
HTTP = urllib3.PoolManager(retries=False, timeout=CEILING_SECONDS)


class Container:
    """A root and a volume, on free ports of this machine."""

    def __init__(self, root: Root, folder: Path) -> None:
        self._root = root
        self._volume = folder / "volume"
        root.make_volume(self._volume)
        self._output = folder / "output"
        with listen("127.0.0.1", 0) as http, listen("127.0.0.1", 0) as mqtt:
            ports = [each.getsockname()[1] for each in (http, mqtt)]
        self.address = f"http://127.0.0.1:{ports[0]}"
        self._settings = {"KHO_PORT": str(ports[0]), "KHO_MQTT_PORT": str(ports[1]), "KHO_PUBLIC_URL": self.address}

    def run(self, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container."""
        command = self._root.command(words, self._volume, self._settings | settings)
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=2 * CEILING_SECONDS)

    @contextmanager
    def serving(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the image's command until the health check passes, and end it as Docker does."""
        command = self._root.command(IMAGE.command, self._volume, self._settings)
        with self._output.open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            until(lambda: process.poll() is not None or "listens on" in self.printed)
            assert process.poll() is None, self.printed
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(CEILING_SECONDS) == 0

    @property
    def printed(self) -> str:
        """The output of the image's command."""
        return self._output.read_text()

    def call(self, path: str, params: dict[str, Any], key: str = "") -> urllib3.BaseHTTPResponse:
        """Return the response of a method's route."""
        credentials = {"authorization": f"Bearer {key}"} if key else {}
        return HTTP.request("POST", self.address + path, json=params, headers=credentials)


@pytest.fixture(scope="module")
def container() -> Iterator[Container]:
    # Not in pytest's own folder, whose parents other users cannot enter.
    with tempfile.TemporaryDirectory(prefix="kho-container-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        root = Root(folder / "root", IMAGE)
        (folder / "dist").mkdir()
        build_wheel(folder / "dist")
        root.build({"wheel": {"/kho/dist/": folder / "dist"}})
        yield Container(root, folder)


def test_container_serves_callers_with_keys_and_keeps_their_data(container: Container) -> None:
    """The image serves as its user on a read-only root, requires keys, is healthy, and keeps data in its volume."""
    assert container.run(*IMAGE.health).returncode != 0
    with container.serving() as process:
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.findall(r"^Uid:\s+(.*)$", status, re.MULTILINE) == ["\t".join(["10001"] * 4)]
        assert re.findall(r"^Cap(?:Eff|Bnd):\s+(\w+)$", status, re.MULTILINE) == ["0" * 16] * 2
        assert container.run(*IMAGE.health).returncode == 0
        assert container.call("/agent-data/query_knowledge", {"query": "PF"}).status == HTTPStatus.UNAUTHORIZED
        created = container.run("kho", "keys", "create", "--tenant", "acme", "--role", "writer", "--json")
        key = json.loads(created.stdout)["key"]
        document = {
            "document_id": "doc-pf",
            "parent_id": "root",
            "metadata": {"title": "PF"},
            "content": {"mime_type": "text/markdown", "body": "To set up PF, run pf init."},
        }
        assert container.call("/agent-data/create_document", document, key).status == HTTPStatus.OK
        assert "Preparing" not in container.printed
    with container.serving():
        answer = container.call("/agent-data/query_knowledge", {"query": "How do I set up PF?"}, key)
        assert [each["document_id"] for each in answer.json()["context"]] == ["doc-pf"]


def test_root_is_read_only(container: Container) -> None:
    """Only the volume and /tmp can be written."""
    for folder, writable in (("/", False), ("/opt/kho", False), ("/home", False), ("/tmp", True), ("/data", True)):
        assert (container.run("touch", f"{folder}/file").returncode == 0) == writable


def test_container_does_not_serve_without_keys(container: Container) -> None:
    """The image refuses to serve others in open mode."""
    refused = container.run(*IMAGE.command, "--auth", "open")
    assert refused.returncode == 1
    assert "use --auth required" in refused.stderr
