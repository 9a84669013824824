"""Record a data folder of a release for the upgrade test: `python -m tests.record_release <name> <checkout>...`.

Each checkout is set up by its own `make setup`. They are served in this order on one folder: the last one is the
release, and those before it are revisions whose data the release has taken over. The folder is packed to
tests/data/releases/<name>.tar.xz. Its keys and tokens are of no other installation.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.helpers.kho_server import KhoServer
from tests.helpers.oauth_client import PUBLIC_URL
from tests.helpers.oauth_person import Person
from tests.helpers.releases import QUESTION, RELEASES, SECRETS, TENANT
from tests.helpers.wait import until

_LEFT_OUT: Final = ("*.log", "*.sock", "*.sqlite-*", "lock", "console", "reserve*", "serving.json", "problems.json")


def main() -> None:
    """Record and pack the folder."""
    name, *checkouts = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="kho-release-") as folder:
        data = Path(folder) / "data"
        for number, checkout in enumerate(checkouts, 1):
            _write(Path(checkout).resolve(), data, is_release=number == len(checkouts))
        with closing(sqlite3.connect(data / "dynamodb.sqlite", isolation_level=None)) as store:
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            store.execute("VACUUM")
        RELEASES.mkdir(exist_ok=True)
        # The index's files are mostly holes, which Python unpacks as such but does not pack.
        options = ["--sparse", "--hole-detection=raw", "--format=gnu", "--sort=name", "--owner=0", "--group=0"]
        options += ["--mtime=@0", *(f"--exclude={pattern}" for pattern in _LEFT_OUT)]
        subprocess.run(["tar", *options, "-C", data, "-cJf", RELEASES / f"{name}.tar.xz", "."], check=True)


class _Release:
    """A server of a checkout, called with a key of the tenant."""

    def __init__(self, checkout: Path, data: Path) -> None:
        self._program = str(checkout / ".venv" / "bin" / "kho")
        self._data = data
        os.chdir(checkout)
        file = data / SECRETS
        self.secrets: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        if not self.secrets:
            self.secrets = {"key": self.command("keys", "create", "--tenant", TENANT, "--role", "admin")}
        options = ("--auth", "required", "--public-url", PUBLIC_URL)
        self.server = KhoServer(data, *options, program=self._program)

    def command(self, *arguments: str) -> Any:
        """Return the JSON that a command prints."""
        command = [self._program, *arguments, "--data", str(self._data), "--json"]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)

    def __call__(self, method: str, /, **params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        headers = {"authorization": f"Bearer {self.secrets['key']['key']}"}
        answer = json.loads(self.server.post("/jsonrpc", body, **headers).data)
        assert "result" in answer, (method, answer)
        return answer["result"]

    def close(self) -> None:
        self.server.interrupt()
        (self._data / SECRETS).write_text(json.dumps(self.secrets | {"recorded_at": int(time.time())}, indent=1))


def _write(checkout: Path, data: Path, *, is_release: bool) -> None:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    revision = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    release = _Release(checkout, data)
    try:
        _delete_documents(release, revision)
        if is_release:
            _write_texts(release)
            _write_devices(release)
            _write_grant(release)
    finally:
        release.close()


def _delete_documents(call: _Release, revision: str) -> None:
    """Delete a document with one below it."""
    for document_id, parent_id in ((f"gone-{revision}", "root"), (f"below-{revision}", f"gone-{revision}")):
        content = {"mime_type": "text/plain", "body": f"Written and deleted by {revision}."}
        call("agent-data/create_document", document_id=document_id, parent_id=parent_id, content=content)
    call("agent-data/delete_document", document_id=f"gone-{revision}", recursive=True)


def _write_texts(call: _Release) -> None:
    """Write a document with a history, a conversation, an experience, a collection and a project."""
    ferns = {"mime_type": "text/markdown", "body": "# Ferns\n\nFerns are watered at dawn."}
    metadata = {"title": "Ferns"}
    call("agent-data/create_document", document_id="ferns", parent_id="root", content=ferns, metadata=metadata)
    for body in ("Ferns are watered at noon.", ferns["body"]):
        call("agent-data/update_document", document_id="ferns", patch={"content": {"body": body}})
    for role, content in (("user", QUESTION), ("assistant", "At dawn.")):
        call("memory-server/memory/add_message", conversation_id="chat", role=role, content=content)
    call("memory-server/memory/set_summary", conversation_id="chat", summary="Ferns are watered at dawn.")
    report = {"title": "Ferns turn brown", "problem_description": "Too much sun.", "solution": "Move them into shade."}
    call("recall-kit/submit_experience", **report)
    call("research-agent/manage_collections", action="create", collection_name="notes")
    html = "<h1>Moss</h1><p>Moss grows where it is <b>wet</b>.</p>"
    documents = [{"path": "plants/ferns.md", "content": ferns["body"]}, {"path": "moss.html", "content": html}]
    call("research-agent/ingest_documents", collection="notes", documents=documents)
    call("research-agent/manage_projects", action="create", project_name="balcony")
    call("research-agent/manage_projects", action="link", project_name="balcony", collections="notes")
    for method in ("agent-data/query_knowledge", "research-agent/query_knowledge_base"):
        until(lambda method=method: "dawn" in json.dumps(call(method, query=QUESTION)))  # type: ignore[misc]
    call("recall-kit/query_experiences", keywords="brown ferns")


def _write_devices(call: _Release) -> None:
    """Write a registered device, simulated ones with their sessions, firmware and a webhook."""
    call.secrets["device"] = call.command("devices", "register", "lamp-1", "--tenant", TENANT)
    devices = call("device-server/devices/simulate")["devices"]
    for device in devices:
        call("device-server/tools/list", device_id=device["device_id"])
    firmware = {"board": "bread-compact-wifi", "version": "2.4.3", "url": "https://files.invalid/2.4.3.bin"}
    call("device-server/firmware/set", **firmware)
    call("device-server/webhooks/set", url="https://hooks.invalid/kho", events=["firmware"])


def _write_grant(call: _Release) -> None:
    """Authorize a client with the tenant's key."""
    person = Person(call.server)
    person.client.public_url = PUBLIC_URL
    person.client.register(client_name="Notes")
    call.secrets["client_id"] = person.client.client_id
    call.secrets["tokens"] = person.client.tokens(call.secrets["key"]["key"])


if __name__ == "__main__":
    main()
