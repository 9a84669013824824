"""Plain retrieval to compare Kho with: BM25, e5, and their min-max fusion, all on whole documents and exact."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from shared.search.bm25 import LENGTH, SATURATION, number, question_terms
from shared.search.embedding.e5 import E5
from shared.search.tokenizer import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Search = Callable[[str], list[str]]
    """From a query to the documents found, best first."""

MEANING: Final = 0.6
"""The weight of e5 in the fusion."""
_BATCH: Final = 64


class Baselines:
    """The baselines of one data set. They return the best `depth` documents."""

    def __init__(self, corpus: Mapping[str, str], depth: int = 10) -> None:
        self._ids = list(corpus)
        self._depth = depth
        self._e5 = E5()
        texts = list(corpus.values())
        # e5 reads the first 512 tokens of a text.
        batches = (texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH))
        self._vectors = np.array([each.vector for batch in batches for each in self._e5.passages(batch)])
        counts = [Counter(number(form) for word in tokenize(text) for form in word if form) for text in texts]
        lengths = np.array([sum(1 for _ in tokenize(text)) for text in texts])
        self._floors = SATURATION * (1 - LENGTH + LENGTH * lengths / lengths.mean())
        postings: dict[int, list[tuple[int, int]]] = {}
        for position, terms in enumerate(counts):
            for term, count in terms.items():
                postings.setdefault(term, []).append((position, count))
        self._postings = {term: np.array(each) for term, each in postings.items()}

    def searches(self) -> dict[str, Search]:
        """Return the searches by name."""
        return {"BM25": self.by_words, "e5": self.by_meaning, "fusion": self.by_both}

    def by_words(self, query: str) -> list[str]:
        """Rank by BM25, with the collection's own average length."""
        return self._best(self._words(query))

    def by_meaning(self, query: str) -> list[str]:
        """Rank by the cosine."""
        return self._best(self._meaning(query))

    def by_both(self, query: str) -> list[str]:
        """Rank by both, each mapped to 0-1 between its lowest and its highest score."""
        meaning, words = _stretched(self._meaning(query)), _stretched(self._words(query))
        return self._best(MEANING * meaning + (1 - MEANING) * words)

    def _meaning(self, query: str) -> Any:
        return self._vectors @ np.array(self._e5.question(query).vector)

    def _words(self, query: str) -> Any:
        scores = np.zeros(len(self._ids))
        terms = question_terms(query)
        for term, weight in zip(terms.numbers, terms.weights, strict=True):
            if term in self._postings:
                at, counts = self._postings[term].T
                idf = np.log(1 + (len(self._ids) - len(at) + 0.5) / (len(at) + 0.5))
                scores[at] += weight * idf * counts * (SATURATION + 1) / (counts + self._floors[at])
        return scores

    def _best(self, scores: Any) -> list[str]:
        return [self._ids[at] for at in np.argsort(-scores, kind="stable")[: self._depth]]


def _stretched(scores: Any) -> Any:
    spread = scores.max() - scores.min()
    return (scores - scores.min()) / spread if spread else scores * 0
