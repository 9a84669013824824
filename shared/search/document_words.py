"""The words of whole documents: one point for each, by which the documents of the best passages are scored again.

So words of different passages add up. A search does not find the points: their collections have names of their own.
Rarity is that among documents, and the usual length is that of the compared documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from shared.search.bm25 import LENGTH, SATURATION, SparseTerms, term_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shared.search.fusion import TermRarity
    from shared.search.passages import DocumentRef, Passage
    from shared.search.store import Scope

_SUFFIX: Final = "#words"
"""No collection's id has it."""
_MAX_TERMS: Final = 4_000
"""The commonest words of a document. In one that has more, a word that it uses once weighs next to nothing."""
_LENGTH_TERM: Final = 0
"""The number by which a point has its document's length: the only one that no word has."""


@dataclass(frozen=True, slots=True)
class DocumentMatch:
    """The keyword match of a whole document, and the share of the question's words in it. Both are in 0-1."""

    strength: float
    overlap: float


def words_collection(collection: str) -> str:
    """Return the collection that the words of a collection's documents are in."""
    return collection + _SUFFIX


def is_of_words(scope: Scope) -> bool:
    """Return True if the scope is of words."""
    return any(each.endswith(_SUFFIX) for each in scope.collections or ())


def with_words(scope: Scope) -> Scope:
    """Return the scope with the words of its documents."""
    if scope.collections is None:
        return scope
    return replace(scope, collections=(*scope.collections, *map(words_collection, scope.collections)))


def of_words(scope: Scope) -> Scope:
    """Return the scope of the words of the scope's documents, alone."""
    collections = scope.collections
    return replace(scope, collections=None if collections is None else tuple(map(words_collection, collections)))


def words_id(document: DocumentRef) -> str:
    """Return the id of the point with a document's words."""
    return str(uuid5(UUID(document.id), "words"))


def document_terms(passages: Sequence[Passage]) -> SparseTerms:
    """Count the words of a document: each text, heading, title and path once."""
    lines: dict[str, None] = {}
    for passage in passages:
        lines |= dict.fromkeys([*([passage.source] if "/" in passage.source else []), *passage.headings])
    counts, length = term_counts("\n".join([*lines, *(passage.text for passage in passages)]))
    kept = dict(counts.most_common(_MAX_TERMS))
    return SparseTerms([_LENGTH_TERM, *kept], [float(length), *map(float, kept.values())])


def match_documents(counts: Mapping[str, Mapping[int, float]], rarity: TermRarity) -> dict[str, DocumentMatch]:
    """Return how well each document matches a question, by the counts of its words."""
    lengths = [each[_LENGTH_TERM] for each in counts.values()]
    usual = sum(lengths) / len(lengths) if lengths else 1.0
    return {id_: _match(each, rarity, usual) for id_, each in counts.items()}


def numbers_to_read(terms: SparseTerms) -> list[int]:
    """Return the numbers that a match of these terms needs."""
    return [_LENGTH_TERM, *terms.numbers]


def _match(counts: Mapping[int, float], rarity: TermRarity, usual: float) -> DocumentMatch:
    floor = SATURATION * (1 - LENGTH + LENGTH * counts[_LENGTH_TERM] / (usual or 1.0))
    weights = {number: count * (SATURATION + 1) / (count + floor) for number, count in counts.items()}
    return DocumentMatch(rarity.strength(rarity.bm25(weights)), rarity.overlap(weights))
