"""Deleted and emptied files: every reader quotes only the present text."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from infra.clients.agent.backend import BackendError, RemoteBackend
from infra.clients.agent.files.reader import FileReader
from infra.clients.agent.files.roots import Roots
from infra.clients.agent.folder_upload import FolderUpload
from tests.helpers.editor_folder import write_files
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Ingest = Callable[..., dict[str, Any]]

COUNTS = ("added", "updated", "unchanged", "removed")


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return two roots of one name."""
    folder = tmp_path_factory.mktemp("gone")
    roots = [folder / "x" / "docs", folder / "y" / "docs"]
    for root in roots:
        root.mkdir(parents=True)
    return roots


@pytest.fixture(scope="module")
def server(roots: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Yield a server that reads files under the roots."""
    options = [option for root in roots for option in ("--root", str(root))]
    with KhoServer(tmp_path_factory.mktemp("served") / "data", *options) as running:
        yield running


def finished(server: KhoServer, job_id: str) -> dict[str, Any]:
    """Return the report of an ingestion job once it has ended."""
    reports: list[dict[str, Any]] = []

    def has_ended() -> bool:
        reports.append(server.call("research-agent/get_ingestion", job_id=job_id))
        assert reports[-1]["status"] in ("queued", "running", "done"), reports[-1]
        return bool(reports[-1]["status"] == "done")

    until(has_ended)
    return reports[-1]


@pytest.fixture(params=["server", "command"])
def ingest(request: pytest.FixtureRequest, server: KhoServer, roots: list[Path]) -> Ingest:
    """Ingest a path into a new collection: read by the server, or by the command line."""
    collection = request.node.name.translate(str.maketrans("[]", "--"))[-64:]
    server.call("research-agent/manage_collections", action="create", collection_name=collection)

    def by_server(path: Path) -> dict[str, Any]:
        params = {"collection": collection, "path": str(path), "recursive": True}
        answer = server.rpc({"jsonrpc": "2.0", "id": 1, "method": "research-agent/ingest_documents", "params": params})
        if "error" in answer:
            return {"error": answer["error"]["data"]["code"]}
        result: dict[str, Any] = answer["result"]
        return finished(server, result["job_id"]) if result["status"] == "accepted" else result

    def by_command(path: Path) -> dict[str, Any]:
        with closing(RemoteBackend(server.address, "", 60)) as backend:
            ingestion = FolderUpload(backend, collection, lambda *_: None)
            try:
                return ingestion.run(FileReader(Roots(roots)), str(path), recursive=True)
            except BackendError as refusal:
                return {"error": refusal.data["code"]}

    def ingested(path: Path) -> dict[str, Any]:
        report = (by_server if request.param == "server" else by_command)(path)
        info = server.call("research-agent/manage_collections", action="info", collection_name=collection)
        counts = {name: report[name] for name in COUNTS if report.get(name)}
        failed = {each["path"]: each["reason"] for each in report.get("failed") or []}
        return {
            "told": report.get("error") or counts,
            "failed": failed,
            "held": sorted(each["path"] for each in info["documents"]),
        }

    return ingested


@pytest.fixture(autouse=True)
def files(roots: list[Path]) -> None:
    for root in roots:
        write_files(
            root, {"readme.md": f"# Of {root.parent.name}", "sub/a.md": "The harbour opens at six.", "sub/b.md": "B"}
        )


def test_emptied_file_is_removed_and_listed(ingest: Ingest, roots: list[Path]) -> None:
    sub = roots[0] / "sub"
    assert ingest(sub)["told"] == {"added": 2}
    (sub / "a.md").write_text("")
    assert ingest(sub) == {
        "told": {"unchanged": 1, "removed": 1},
        "failed": {"x/docs/sub/a.md": "holds no text"},
        "held": ["x/docs/sub/b.md"],
    }
    (sub / "b.md").write_bytes(b"\x89PNG\0\0")
    again = ingest(sub)
    assert (again["told"], again["failed"]["x/docs/sub/b.md"], again["held"]) == ({"removed": 1}, "is not text", [])


@pytest.mark.parametrize("content", [b"", b"\x89PNG\0\0", b" " * (5 << 20)], ids=["empty", "binary", "large"])
def test_emptied_single_file_is_removed_and_rejected(ingest: Ingest, roots: list[Path], content: bytes) -> None:
    file = roots[0] / "sub/a.md"
    assert ingest(file)["held"] == ["x/docs/sub/a.md"]
    file.write_bytes(content)
    assert ingest(file) == {"told": "DOCUMENT_UNREADABLE", "failed": {}, "held": []}


def test_deleted_path_is_removed(ingest: Ingest, roots: list[Path]) -> None:
    x, y = roots
    assert ingest(x)["told"] == ingest(y)["told"] == {"added": 3}
    remaining = ["y/docs/readme.md", "y/docs/sub/a.md", "y/docs/sub/b.md"]
    (x / "readme.md").unlink()
    report = ingest(x / "readme.md")
    assert (report["told"], report["held"]) == ({"removed": 1}, ["x/docs/sub/a.md", "x/docs/sub/b.md", *remaining])
    assert ingest(x / "readme.md")["told"] == "DOCUMENT_NOT_FOUND"
    (x / "sub").rename(x / "renamed")
    report = ingest(x / "sub")
    (x / "renamed").rename(x / "sub")
    assert (report["told"], report["held"]) == ({"removed": 2}, remaining)
    assert ingest(x / "never")["told"] == "DOCUMENT_NOT_FOUND"


def test_roots_with_the_same_name_stay_separate(ingest: Ingest, roots: list[Path]) -> None:
    x, y = roots
    assert ingest(x)["told"] == {"added": 3}
    assert ingest(y / "sub")["told"] == {"added": 2}
    assert ingest(y)["told"] == {"added": 1, "unchanged": 2}
    (x / "sub/b.md").unlink()
    assert ingest(x) == {
        "told": {"unchanged": 2, "removed": 1},
        "failed": {},
        "held": ["x/docs/readme.md", "x/docs/sub/a.md", "y/docs/readme.md", "y/docs/sub/a.md", "y/docs/sub/b.md"],
    }
