"""txtai, with the embedder that Kho has."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from shared.knowledge.embedding.e5 import E5

QUESTION: Final = "query: "


class Txtai:
    """txtai with its contents kept and Kho's embedder; `known` are vectors that it need not ask for."""

    def __init__(self, *, hybrid: bool, known: dict[str, list[float]] | None = None) -> None:
        from txtai import Embeddings  # type: ignore[import-not-found]

        self.known: dict[str, list[float]] = {}
        self._given = known or {}
        self._embeddings: Any = Embeddings(
            method="external",
            transform=lambda texts: self._vectors(texts),  # noqa: PLW0108 - it tells functions from methods
            instructions={"query": QUESTION, "data": ""},
            content=True,
            hybrid=hybrid,
        )

    def take(self, passages: list[tuple[str, str]]) -> None:
        """Embed, keep and index passages that are split already."""
        self._embeddings.upsert([(id_, text, None) for id_, text in passages])

    def ask(self, query: str) -> list[str]:
        """The ids of the ten best passages."""
        return [each["id"] for each in self._embeddings.search(query, 10)]

    def _vectors(self, texts: list[str]) -> Any:
        if texts[0].startswith(QUESTION):
            found = [E5().question(text.removeprefix(QUESTION)).vector for text in texts]
        else:
            new = [text for text in texts if text not in self._given]
            self.known |= {text: each.vector for text, each in zip(new, E5().passages(new), strict=True)}  # type: ignore[misc]
            found = [self._given.get(text) or self.known[text] for text in texts]
        return np.array(found, dtype=np.float32)
