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
    """A backend whose first responses to documents are errors of this code."""

    def __init__(self, code: str, times: int) -> None:
        self.code = code
        self.left = times
        self.brought: list[str] = []

    def call(self, method: str, params: dict[str, Any]) -> Any:
        if method == "list_documents":
            return {"documents": []}
        if self.left:
            self.left -= 1
            raise BackendError(-32000, "no", {"code": self.code, "details": {}, "guidance": ""})
        self.brought += [each["path"] for each in params["documents"]]
        return {"status": "success"} | COUNTS | {"added": len(params["documents"])}


def run(folder: Path, backend: Slow) -> dict[str, Any]:
    (folder / "a.md").write_text("# A")
    reader = FileReader(Roots([folder]))
    return FolderUpload(backend, "notes", lambda _done, _total, _name: None).run(reader, ".", recursive=False)


def test_timed_out_batch_is_retried(tmp_path: Path) -> None:
    backend = Slow("OUT_OF_TIME", 2)
    assert run(tmp_path, backend)["added"] == 1
    assert backend.brought == ["a.md"]


@pytest.mark.parametrize(("code", "times"), [("OUT_OF_TIME", 3), ("NOT_ALLOWED", 1)])
def test_rejected_batch_is_reported(tmp_path: Path, code: str, times: int) -> None:
    backend = Slow(code, times)
    with pytest.raises(BackendError):
        run(tmp_path, backend)
    assert (backend.left, backend.brought) == (0, [])
