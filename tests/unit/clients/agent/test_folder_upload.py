"""Uploading files to a backend: timeouts are retried, rejections are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.clients.agent.backend import BackendError
from infra.clients.agent.files.reader import FileReader
from infra.clients.agent.files.roots import Roots
from infra.clients.agent.folder_upload import FolderUpload

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = dict.fromkeys(("added", "updated", "unchanged", "removed", "chunks", "pending"), 0)


class Slow:
    """A backend whose first responses to documents are errors of this code, after it has stored them."""

    def __init__(self, code: str, times: int, stored: dict[str, str] | None = None) -> None:
        self.code = code
        self.left = times
        self.brought: list[str] = []
        self.stored = stored or {}

    def call(self, method: str, params: dict[str, Any]) -> Any:
        if method == "list_documents":
            common = {"tree": "", "chunks": 1, "indexed": True}
            return {"documents": [common | {"path": path, "hash": hash_} for path, hash_ in self.stored.items()]}
        documents = {each["path"]: each["hash"] for each in params["documents"]}
        unchanged = documents.items() & self.stored.items()
        self.stored |= documents
        if self.left:
            self.left -= 1
            raise BackendError(-32000, "no", {"code": self.code, "details": {}, "guidance": ""})
        self.brought += documents
        failed = [{"path": "bad.md", "reason": "holds no text"}] if "bad.md" in documents else []
        added = len(documents) - len(unchanged) - len(failed)
        return {"status": "success"} | COUNTS | {"added": added, "unchanged": len(unchanged), "failed": failed}


def run(folder: Path, backend: Slow) -> dict[str, Any]:
    (folder / "a.md").write_text("# A")
    reader = FileReader(Roots([folder]))
    return FolderUpload(backend, "notes", lambda _done, _total, _name: None).run(reader, ".", recursive=False)


def test_timed_out_batch_is_retried(tmp_path: Path) -> None:
    backend = Slow("OUT_OF_TIME", 2)
    assert run(tmp_path, backend)["added"] == 1
    assert backend.brought == ["a.md"]


@pytest.mark.parametrize("times", [0, 1, 2])
def test_batch_that_is_sent_again_is_counted_by_its_first_effect(tmp_path: Path, times: int) -> None:
    """Documents that were stored by an attempt that ran out of time are added or updated, not unchanged."""
    for name in ("bad.md", "changed.md", "new.md"):
        (tmp_path / name).write_text(f"# {name}")
    result = run(tmp_path, Slow("OUT_OF_TIME", times, {"changed.md": "another hash", "gone.md": "hash"}))
    outcome = {name: result[name] for name in ("added", "updated", "unchanged") if result[name]}
    assert [each["path"] for each in result["failed"]] == ["bad.md"]
    assert outcome == ({"added": 2, "updated": 1} if times else {"added": 3})  # this backend calls each one added


@pytest.mark.parametrize(("code", "times"), [("OUT_OF_TIME", 3), ("NOT_ALLOWED", 1)])
def test_rejected_batch_is_reported(tmp_path: Path, code: str, times: int) -> None:
    backend = Slow(code, times)
    with pytest.raises(BackendError):
        run(tmp_path, backend)
    assert (backend.left, backend.brought) == (0, [])
