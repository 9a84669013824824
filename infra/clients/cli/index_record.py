"""The oldest splitter of an index, as the index records it: in a file of the data folder, or in Qdrant's metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shared.experiences.index import COLLECTION as EXPERIENCES
from shared.platform.config import config
from shared.search.passages import SPLITTER
from shared.search.store.qdrant_rest import QdrantCollection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.services.diagnostics import CheckReport

_CURRENT: Final = {"splitter": SPLITTER}


def check_splitter(report: CheckReport) -> None:
    """Report if the index may have passages that an earlier splitter has made."""
    with report.guard("Passages", "See Qdrant above."):
        oldest = min((int(record.get("splitter", 1)) for record in _records()), default=SPLITTER)
        if oldest < SPLITTER:
            report.note(
                "Passages",
                f"Some are of splitter {oldest}; this program's is {SPLITTER}. Searches find them as before.",
                "Run 'kho reindex', with --stack <name> for a deployed stack: it makes them again, and no others.",
            )
        else:
            report.good("Passages", f"They are of splitter {SPLITTER}.")


def record_splitter() -> None:
    """Record that all passages of the index are of this program's splitter."""
    for collection in _collections():
        if collection.info():
            collection.record(_CURRENT)
    for file in _files():
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(json.loads(file.read_bytes()) | _CURRENT), encoding="utf-8")
        unfinished.rename(file)


def _records() -> Iterator[dict[str, Any]]:
    for collection in _collections():
        if info := collection.info():
            yield info.metadata
    for file in _files():
        yield json.loads(file.read_bytes())


def _collections() -> Iterator[QdrantCollection]:
    if config().qdrant_url:
        for name in (config().qdrant_collection, f"{config().qdrant_collection}-{EXPERIENCES}"):
            yield QdrantCollection(config().qdrant_url, name)


def _files() -> list[Path]:
    folder = "" if config().qdrant_url else config().qdrant_folder
    files = [Path(folder, "space.json"), Path(folder, EXPERIENCES, "space.json")] if folder else []
    return [file for file in files if file.exists()]
