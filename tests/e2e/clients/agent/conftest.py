"""research-agent by its real interfaces: an editor over STDIO, and the command line on the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers.editor_folder import write_files
from tests.helpers.mcp_editor import Editor, editor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


PLANTS = "# Plants\n\nFerns are watered daily.\n\n## Cactus\n\nA cactus needs hardly any water.\n"
BRAKES = "# Xe đạp\n\nCách chỉnh phanh xe đạp cho khỏi kêu.\n"
CODE = '# Tools\n\n```python\ndef sharpen(knife):\n    """Sharpen a knife on a whetstone."""\n    return knife\n```\n'


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the editor has open."""
    folder = tmp_path_factory.mktemp("research") / "work"
    write_files(folder, {"docs/plants.md": PLANTS, "docs/deep/brakes.md": BRAKES, "docs/tools.md": CODE})
    (folder / "docs" / "picture.png").write_bytes(b"\x89PNG\0\0")
    write_files(folder, {"docs/.hidden.md": "hidden", "docs/.gitignore": "*.log\n", "docs/x.log": "ignored"})
    return folder


@pytest.fixture(scope="package")
def data(folder: Path) -> Path:
    """Return the data folder that all tests here share."""
    return folder.parent / "data"


@pytest.fixture(scope="package")
def session(folder: Path, data: Path) -> Iterator[Editor]:
    """Yield an editor in an MCP revision that begins with a handshake."""
    with editor(folder, data) as running:
        yield running


@pytest.fixture(scope="package")
def notes(session: Editor) -> str:
    """Return a collection that contains the documents."""
    session.result("manage_collections", action="create", collection_name="notes")
    report = session.result("ingest_documents", path="docs", collection="notes", recursive=True)
    assert (report["added"], report["failed"], report["skipped"]) == (3, [], {"pictures": 1})
    return "notes"
