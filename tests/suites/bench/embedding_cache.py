"""Embeddings that are computed once for all processes and runs of a benchmark. Never used where speed is measured.

As a program it is `kho` that embeds so.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from shared.search.embedding import e5

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SETTING: Final = "KHO_BENCH_EMBEDDINGS"
"""Names the folder."""
PROGRAM: Final = "tests.suites.bench.embedding_cache"
_WAIT_SECONDS: Final = 60


class EmbeddingCache:
    """Text embeddings in one file. Token vectors have 16 bits, as the embedding function returns them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "embeddings.sqlite"
        self._turn = threading.Lock()
        with closing(self._open()) as connection, connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, text BLOB, tokens BLOB)")

    def embed(
        self, kind: str, texts: Sequence[str], compute: Callable[[Sequence[str]], list[e5.TextVectors]]
    ) -> list[e5.TextVectors]:
        """Return the vectors of `texts`. Compute those that are missing."""
        keys = [hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
        with closing(self._open()) as connection:
            stored = {key: row for key in keys if (row := self._read(connection, key))}
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in stored}
            computed = dict(zip(missing, compute(list(missing.values())), strict=True)) if missing else {}
            with self._turn, connection:
                rows = [(key, _bytes(each.text, "<f4"), _bytes(each.tokens, "<f2")) for key, each in computed.items()]
                connection.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?, ?)", rows)
        return [(stored | computed)[key] for key in keys]

    def install(self) -> None:
        """Make the model in this process embed through the cache. Importers of its functions come later."""
        passages, question, in_context = e5.embed_passages, e5.embed_question, e5.embed_passages_in_context
        e5.embed_passages = lambda texts: self.embed("passage", texts, passages)
        e5.embed_question = lambda text: self.embed("question", [text], lambda texts: [question(texts[0])])[0]

        def compute(pairs: Sequence[str]) -> list[e5.TextVectors]:
            texts, before = zip(*map(json.loads, pairs), strict=True)
            return in_context(texts, before)

        e5.embed_passages_in_context = lambda texts, before: self.embed(
            "in context", [json.dumps(pair) for pair in zip(texts, before, strict=True)], compute
        )

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._file, timeout=_WAIT_SECONDS)

    def _read(self, connection: sqlite3.Connection, key: bytes) -> e5.TextVectors | None:
        row = connection.execute("SELECT text, tokens FROM embeddings WHERE key = ?", [key]).fetchone()
        if row is None:
            return None
        text, tokens = np.frombuffer(row[0], "<f4"), np.frombuffer(row[1], "<f2").astype(np.float32)
        return e5.TextVectors(text, tokens.reshape(-1, len(text)))


def _bytes(vectors: Any, kind: str) -> bytes:
    encoded: bytes = vectors.astype(kind).tobytes()
    return encoded


def main() -> None:
    """Run the command line of `kho` with the cache that `KHO_BENCH_EMBEDDINGS` names."""
    EmbeddingCache(Path(os.environ[SETTING])).install()
    from tests.e2e.long_limits import main as run

    run()


if __name__ == "__main__":
    main()
