"""Exhaustive hybrid matching: every entry above a relevance floor, for callers that re-rank and need a total.

Entries are whole texts in an index of their own, without token vectors. An entry matches if its relevance passes a
floor. The search fetches more candidates by meaning and by words until no entry beyond both lists can pass the floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from shared.search.bm25 import SparseTerms, passage_terms, question_terms
from shared.search.embedding import embedder
from shared.search.embedding.document_embedder import DocumentEmbedder, document_space
from shared.search.fusion import similarity_of
from shared.search.index import PassageIndex, filter_fields
from shared.search.passages import DocumentRef, Passage
from shared.search.store import Point, Scope, VectorQuery, vector_store
from shared.search.tokenizer import has_content_word

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.search.calibration import Calibration
    from shared.search.embedding import Embedder
    from shared.search.store import VectorStore

_SHARED_TENANT: Final = "#everyone"
"""Belongs to no caller: a tenant's name never contains '#'."""
_FIRST_PAGE: Final = 128
_GROWTH: Final = 4
_GRAPH_LIMIT: Final = 1024
"""Above this limit an exact scan is faster than the HNSW graph."""
_MAX_WORDS: Final = 64
_NEAREST: Final = 8
_opening: Final = Lock()


@dataclass(frozen=True, slots=True)
class RelevantEntry:
    """A matching entry."""

    relevance: float
    payload: Mapping[str, Any]


class ExhaustiveSearch:
    """One collection of entries, shared by all tenants."""

    def __init__(self, embedder: Embedder, store: VectorStore, collection: str) -> None:
        self._embedder = DocumentEmbedder(embedder)
        self._store = store
        self._collection = collection
        # Only texts have vectors: the kind needs no condition, which would be checked for each.
        self._scope = Scope(_SHARED_TENANT, (collection,))
        self._index = PassageIndex(self._embedder, store)

    def holds(self, entry_id: str, revision: int) -> bool:
        """Return True if the index holds `revision` or a newer one of the entry, and the entry is not deleted."""
        return self._index.holds(self._document(entry_id), revision)

    def is_outdated(self, entry_id: str) -> bool:
        """Return True if an earlier version of the index's rules has made the entry."""
        return self._index.is_outdated(self._document(entry_id))

    def payload(self, entry_id: str) -> Mapping[str, Any]:
        """Return the payload of an entry, or an empty mapping if it was never stored."""
        id_ = _payload_id(_point(self._document(entry_id)))
        payload: Mapping[str, Any] = self._store.read([id_], ("standing",)).get(id_, {}).get("standing", {})
        return payload

    def put(self, entry_id: str, text: str, revision: int, payload: Mapping[str, Any], payload_version: int) -> None:
        """Index an entry, unless a newer revision of it is stored."""
        self.set_payload(entry_id, payload, payload_version)
        self._index.replace_single(Passage(self._document(entry_id), 0, text, revision))

    def delete(self, entry_id: str, revision: int) -> None:
        """Delete an entry from the index, unless a revision newer than `revision` is stored."""
        self._index.delete(self._document(entry_id), revision)

    def set_payload(self, entry_id: str, payload: Mapping[str, Any], version: int) -> None:
        """Store the payload of an entry, unless a newer version is stored."""
        document = self._document(entry_id)
        fields = filter_fields(document, "document", version) | {"standing": dict(payload)}
        self._store.write([Point(_payload_id(_point(document)), fields)], version)

    def search(self, question: str, floor: float) -> list[RelevantEntry]:
        """Return every entry whose relevance to `question` is at least `floor`, in any order.

        A text without a word matches nothing.
        """
        if not has_content_word(question):
            return []
        query_vector = self._embedder.question(question).vector
        terms = question_terms(question, _MAX_WORDS)
        by_meaning = VectorQuery(query_vector, self._scope, _FIRST_PAGE)
        by_words = VectorQuery(terms, self._scope, _FIRST_PAGE)
        meaning, *words = self._store.search([by_meaning, by_words] if terms.numbers else [by_meaning])
        candidates = _CandidateLists(self._embedder.space.calibration)
        candidates.set_meaning(meaning, _FIRST_PAGE)
        candidates.set_words(words[0] if words else {}, _FIRST_PAGE)
        candidates.coverage = self._coverage(candidates.best, terms)
        while not candidates.is_complete(floor):
            if candidates.words_decide:
                by_words = replace(by_words, limit=by_words.limit * _GROWTH)
                candidates.set_words(self._store.search([by_words])[0], by_words.limit)
            else:
                limit = by_meaning.limit * _GROWTH
                by_meaning = replace(by_meaning, limit=limit, exact=limit > _GRAPH_LIMIT)
                candidates.set_meaning(self._store.search([by_meaning])[0], limit)
        self._fill_gaps(candidates, query_vector, terms, floor)
        relevant = {_payload_id(id_): relevance for id_, relevance in candidates.relevant(floor).items()}
        payloads = self._store.read(list(relevant), ("standing",))
        return [RelevantEntry(relevant[id_], read["standing"]) for id_, read in payloads.items()]

    def near_duplicates(self, entry_id: str, text: str) -> list[Mapping[str, Any]]:
        """Return the payloads of other entries that are almost the same as `text` by meaning and words."""
        threshold = self._embedder.space.calibration.duplicate
        (embedding,) = self._embedder.passages([text])
        (nearest,) = self._store.search([VectorQuery(embedding.vector, self._scope, _NEAREST)])
        nearest.pop(_point(self._document(entry_id)), None)
        by_meaning = {id_: similarity_of(cosine, self._embedder.space.calibration) for id_, cosine in nearest.items()}
        # The similarity is the mean of two values, of which the one by words is 1 at most.
        candidates = [id_ for id_, similarity in by_meaning.items() if (similarity + 1) / 2 > threshold]
        if not candidates:
            return []
        own = passage_terms(text)
        terms = self._store.terms(candidates)
        same = [
            _payload_id(id_)
            for id_ in candidates
            if (by_meaning[id_] + _overlap(own, terms.get(id_, {}))) / 2 > threshold
        ]
        return [fields["standing"] for fields in self._store.read(same, ("standing",)).values()] if same else []

    def close(self) -> None:
        """Close the store. Everything written is kept."""
        self._store.close()

    def _coverage(self, best: str | None, terms: SparseTerms) -> float:
        """Return the squared share of the question's words in the best entry by words: small shares are chance."""
        if best is None:
            return 0.0
        entry_terms = self._store.terms([best], terms.numbers).get(best, {})
        weights = dict(zip(terms.numbers, terms.weights, strict=True))
        share = sum(weight for number, weight in weights.items() if number in entry_terms) / sum(weights.values())
        return float(share**2)

    def _fill_gaps(self, candidates: _CandidateLists, query_vector: Any, terms: SparseTerms, floor: float) -> None:
        """Score candidates of one list by the other criterion if that can change the result."""
        by_words, by_meaning = candidates.undecided(floor)
        queries = [
            VectorQuery(near, replace(self._scope, ids=tuple(ids)), len(ids))
            for near, ids in ((query_vector, by_words), (terms, by_meaning))
            if ids
        ]
        if queries:
            results = self._store.search(queries)
            candidates.add(results[0] if by_words else {}, results[-1] if by_meaning else {})

    def _document(self, entry_id: str) -> DocumentRef:
        return DocumentRef(_SHARED_TENANT, self._collection, entry_id)


class _CandidateLists:
    """Candidates with their similarity to the question and their BM25 scores."""

    def __init__(self, calibration: Calibration) -> None:
        self._calibration = calibration
        self._meaning: dict[str, float] = {}
        self._words: dict[str, float] = {}
        self._meaning_bound = self._words_bound = 0.0
        self.coverage = 0.0

    @property
    def best(self) -> str | None:
        """The best candidate by words."""
        return next(iter(self._words), None)

    @property
    def words_decide(self) -> bool:
        """True if entries beyond the list by words may score higher than entries beyond the other list."""
        return self._strength(self._words_bound) >= self._meaning_bound

    def set_meaning(self, candidates: Mapping[str, float], limit: int) -> None:
        """Set the candidates by meaning, best first. A list shorter than `limit` is complete."""
        self._meaning = {id_: self._similarity(cosine) for id_, cosine in candidates.items()}
        self._meaning_bound = list(self._meaning.values())[-1] if len(candidates) == limit else 0.0

    def set_words(self, candidates: Mapping[str, float], limit: int) -> None:
        """Set the candidates by words, best first. A list shorter than `limit` is complete."""
        self._words = dict(candidates)
        self._words_bound = list(candidates.values())[-1] if len(candidates) == limit else 0.0

    def add(self, meaning: Mapping[str, float], words: Mapping[str, float]) -> None:
        """Add scores of further candidates."""
        self._meaning |= {id_: self._similarity(cosine) for id_, cosine in meaning.items()}
        self._words |= words

    def is_complete(self, floor: float) -> bool:
        """Return True if no entry beyond the lists can pass."""
        upper_bound = self._meaning_bound + self._strength(self._words_bound)
        return upper_bound < self._threshold(floor)

    def undecided(self, floor: float) -> tuple[list[str], list[str]]:
        """Return the candidates by words whose meaning decides, and those by meaning whose words may decide."""
        threshold = self._threshold(floor)
        by_words = [
            id_
            for id_, score in self._words.items()
            if id_ not in self._meaning and self._strength(score) + self._meaning_bound >= threshold
        ]
        weakest = self._strength(self._words_bound)
        by_meaning = [
            id_
            for id_, similarity in self._meaning.items()
            if weakest and id_ not in self._words and similarity + weakest >= threshold
        ]
        return by_words, by_meaning

    def relevant(self, floor: float) -> dict[str, float]:
        """Return the relevance in 0-1 of each candidate that passes."""
        scores = {id_: self._relevance(id_) for id_ in self._meaning.keys() | self._words.keys()}
        return {id_: score for id_, score in scores.items() if score >= floor}

    def _relevance(self, id_: str) -> float:
        total = self._meaning.get(id_, 0.0) + self._strength(self._words.get(id_, 0.0))
        return min(1.0, total / (1 + self.coverage))

    def _threshold(self, floor: float) -> float:
        return floor * (1 + self.coverage)

    def _strength(self, bm25: float) -> float:
        """Return a BM25 score relative to the best candidate's, scaled by the coverage of the question."""
        return self.coverage * bm25 / self._words[self.best] if self.best else 0.0

    def _similarity(self, cosine: float) -> float:
        unrelated, related = self._calibration.unrelated_entry, self._calibration.related_entry
        return min(1.0, max(0.0, (similarity_of(cosine, self._calibration) - unrelated) / (related - unrelated)))


def open_exhaustive_search(collection: str) -> ExhaustiveSearch:
    """Return the process-wide search of a collection. The embedded store allows one instance per process."""
    with _opening:
        return _opened(collection)


@cache
def _opened(collection: str) -> ExhaustiveSearch:
    text_embedder = embedder()
    return ExhaustiveSearch(text_embedder, vector_store(document_space(text_embedder.space), collection), collection)


def scope_of(collection: str, entry_id: str) -> Scope:
    """Return the scope of an entry's points."""
    return Scope(_SHARED_TENANT, (collection,), DocumentRef(_SHARED_TENANT, collection, entry_id).id)


def _point(document: DocumentRef) -> str:
    return Passage(document, 0, "", 0).id


def _payload_id(point_id: str) -> str:
    return str(uuid5(UUID(point_id), "standing"))


def _overlap(one: SparseTerms, other: Mapping[int, float]) -> float:
    """Return the cosine similarity of two sparse term vectors."""
    weights = dict(zip(one.numbers, one.weights, strict=True))
    both = sum(weight * other[number] for number, weight in weights.items() if number in other)
    sizes = sqrt(sum(each * each for each in weights.values()) * sum(each * each for each in other.values()))
    return both / sizes if sizes else 0.0
