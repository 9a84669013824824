"""Files in the folder that an editor has open, and the documents that a collection holds of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.helpers.mcp_editor import Editor


def write_files(folder: Path, files: dict[str, str]) -> None:
    """Write these files, by their paths."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def sources(session: Editor, query: str, collection: str) -> list[str]:
    """Return the documents that a query finds, best first."""
    result = session.result("query_knowledge_base", query=query, collections=collection)
    return [each["source_document"] for each in result["results"]]


def stored_hashes(session: Editor, collection: str) -> dict[str, str]:
    """Return the hashes of the documents in a collection, by their paths."""
    info = session.result("manage_collections", action="info", collection_name=collection)
    return {each["path"]: each["hash"] for each in info["documents"]}


def address_of(data: Path) -> str:
    """Return the address of the server that an editor has started on the data folder."""
    return str(json.loads((data / "serving.json").read_text())["address"])
