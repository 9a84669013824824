"""Everything that matches a question, for whoever ranks by more than likeness and tells how much there is.

Entries are whole texts in an index of their own, without parts. A matching entry is one whose relevance passes a floor;
candidates by meaning and by words are asked for until whatever lies beyond both lists cannot pass it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from shared.knowledge.bm25 import SparseTerms, passage_terms, question_terms
from shared.knowledge.embedding import embedder
from shared.knowledge.embedding.whole import Whole, whole
from shared.knowledge.fusion import likeness
from shared.knowledge.index import PassageIndex
from shared.knowledge.passages import DocumentRef, Passage
from shared.knowledge.store import Point, Scope, VectorQuery, vector_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shared.knowledge.embedding import Embedder
    from shared.knowledge.embedding.spaces import Space
    from shared.knowledge.store import VectorStore

_TENANT: Final = "#everyone"
"""No caller's: a tenant's name holds no '#'."""
_FIRST: Final = 128
_MORE: Final = 4
_BY_LINKS: Final = 1024
"""More than these are found sooner by looking at all than by following links."""
_WORDS: Final = 64
_UNRELATED, _RELATED = 0.25, 0.75
"""Between these likenesses lies what a question and its answers are to each other: never as alike as two copies."""
_NEAREST: Final = 8
_opening: Final = Lock()


@dataclass(frozen=True, slots=True)
class SearchEntry:
    """A text that can be found under an id; `standing` is given back with it."""

    id: str
    text: str
    revision: int
    standing: Mapping[str, Any]
    standing_version: int


@dataclass(frozen=True, slots=True)
class RelevantEntry:
    """An entry that matches."""

    relevance: float
    standing: Mapping[str, Any]


class ExhaustiveSearch:
    """One collection of entries, which everybody sees."""

    def __init__(self, embedder: Embedder, store: VectorStore, collection: str) -> None:
        self._embedder = Whole(embedder)
        self._store = store
        self._collection = collection
        self._scope = Scope(_TENANT, (collection,), kind="passage")
        self._index = PassageIndex(self._embedder, store)

    def holds(self, entry_id: str, revision: int) -> bool:
        """Whether what is found of an entry is of `revision` or a newer one, and it is not deleted."""
        return self._index.holds(self._document(entry_id), revision)

    def standing(self, entry_id: str) -> Mapping[str, Any]:
        """What is given back with an entry; nothing where it was never kept."""
        id_ = _standing(_point(self._document(entry_id)))
        found: Mapping[str, Any] = self._store.read([id_], ("standing",)).get(id_, {}).get("standing", {})
        return found

    def keep(self, entry: SearchEntry) -> None:
        """Let `entry` be found, unless a newer revision of it is there already."""
        self.stand(entry.id, entry.standing, entry.standing_version)
        passage = Passage(self._document(entry.id), 0, entry.text, entry.revision)
        self._index.replace(passage.document, entry.revision, [passage])

    def delete(self, entry_id: str, revision: int) -> None:
        """Let nothing be found of an entry, unless a revision newer than `revision` is there already."""
        self._index.delete(self._document(entry_id), revision)

    def stand(self, entry_id: str, standing: Mapping[str, Any], version: int) -> None:
        """Give `standing` back with an entry from now on, unless a newer version is there already."""
        document = self._document(entry_id)
        payload = {"tenant": _TENANT, "collection": self._collection, "document": document.id, "kind": "document"}
        point = Point(_standing(_point(document)), payload | {"version": version, "standing": dict(standing)})
        self._store.write([point], version)

    def matches(self, question: str, floor: float) -> list[RelevantEntry]:
        """Every entry that is relevant to `question` by `floor` or more, in any order."""
        asked = self._embedder.question(question).vector
        terms = question_terms(question)
        terms = SparseTerms(terms.numbers[:_WORDS], terms.weights[:_WORDS])
        by_meaning, by_words = VectorQuery(asked, self._scope, _FIRST), VectorQuery(terms, self._scope, _FIRST)
        meaning, *words = self._store.search([by_meaning, by_words] if terms.numbers else [by_meaning])
        found = _CandidateLists(self._embedder.space)
        found.take_meaning(meaning, _FIRST)
        found.take_words(words[0] if words else {}, _FIRST)
        found.coverage = self._coverage(found.best, terms)
        while not found.is_complete(floor):
            if found.words_decide:
                by_words = replace(by_words, limit=by_words.limit * _MORE)
                found.take_words(self._store.search([by_words])[0], by_words.limit)
            else:
                limit = by_meaning.limit * _MORE
                by_meaning = replace(by_meaning, limit=limit, exact=limit > _BY_LINKS)
                found.take_meaning(self._store.search([by_meaning])[0], limit)
        self._complete(found, asked, terms, floor)
        relevant = {_standing(id_): relevance for id_, relevance in found.relevant(floor).items()}
        standings = self._store.read(list(relevant), ("standing",))
        return [RelevantEntry(relevant[id_], read["standing"]) for id_, read in standings.items()]

    def alike(self, entry_id: str, text: str, least: float) -> list[Mapping[str, Any]]:
        """The standings of other entries that are more alike to `text`, by meaning and words, than `least`."""
        (embedding,) = self._embedder.passages([text])
        (nearest,) = self._store.search([VectorQuery(embedding.vector, self._scope, _NEAREST)])
        nearest.pop(_point(self._document(entry_id)), None)
        own = passage_terms(text)
        terms = self._store.terms(list(nearest))
        space = self._embedder.space
        same = [
            _standing(id_)
            for id_, cosine in nearest.items()
            if (likeness(cosine, space) + _overlap(own, terms.get(id_, {}))) / 2 > least
        ]
        return [found["standing"] for found in self._store.read(same, ("standing",)).values()]

    def close(self) -> None:
        """Let go of the store; whatever was written is kept."""
        self._store.close()

    def _coverage(self, best: str | None, terms: SparseTerms) -> float:
        """The share of the question's words that the best entry by words holds, squared: small shares are chance."""
        if best is None:
            return 0.0
        held = self._store.terms([best]).get(best, {})
        weights = dict(zip(terms.numbers, terms.weights, strict=True))
        share = sum(weight for number, weight in weights.items() if number in held) / sum(weights.values())
        return float(share**2)

    def _complete(self, found: _CandidateLists, asked: Any, terms: SparseTerms, floor: float) -> None:
        """Learn of candidates of one list what the other would say, where that decides."""
        by_words, by_meaning = found.undecided(floor)
        asks = [VectorQuery(asked, replace(self._scope, ids=tuple(by_words)), len(by_words))] if by_words else []
        asks += [VectorQuery(terms, replace(self._scope, ids=tuple(by_meaning)), len(by_meaning))] if by_meaning else []
        if asks:
            answers = self._store.search(asks)
            found.add(answers[0] if by_words else {}, answers[-1] if by_meaning else {})

    def _document(self, entry_id: str) -> DocumentRef:
        return DocumentRef(_TENANT, self._collection, entry_id)


class _CandidateLists:
    """What is known of candidates: how alike they are to the question, and how well they hold its words."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._meaning: dict[str, float] = {}
        self._words: dict[str, float] = {}
        self._least_meaning = self._least_words = 0.0
        self.coverage = 0.0

    @property
    def best(self) -> str | None:
        """The best candidate by words."""
        return next(iter(self._words), None)

    @property
    def words_decide(self) -> bool:
        """Whether what lies beyond the list by words may be worth more than what lies beyond the other."""
        return self._strength(self._least_words) >= self._least_meaning

    def take_meaning(self, found: Mapping[str, float], limit: int) -> None:
        """Know these by meaning, best first; they are all there are where there are fewer than `limit`."""
        self._meaning = {id_: self._likeness(cosine) for id_, cosine in found.items()}
        self._least_meaning = list(self._meaning.values())[-1] if len(found) == limit else 0.0

    def take_words(self, found: Mapping[str, float], limit: int) -> None:
        """Know these by words, best first; they are all there are where there are fewer than `limit`."""
        self._words = dict(found)
        self._least_words = list(found.values())[-1] if len(found) == limit else 0.0

    def add(self, meaning: Mapping[str, float], words: Mapping[str, float]) -> None:
        """Know more of candidates."""
        self._meaning |= {id_: self._likeness(cosine) for id_, cosine in meaning.items()}
        self._words |= words

    def is_complete(self, floor: float) -> bool:
        """Whether nothing beyond the lists can pass."""
        beyond = self._least_meaning + self._strength(self._least_words)
        return beyond < self._least(floor)

    def undecided(self, floor: float) -> tuple[list[str], list[str]]:
        """Candidates by words whose meaning decides, and candidates by meaning whose words may count."""
        least = self._least(floor)
        by_words = [
            id_
            for id_, score in self._words.items()
            if id_ not in self._meaning and self._strength(score) + self._least_meaning >= least
        ]
        weakest = self._strength(self._least_words)
        by_meaning = [
            id_
            for id_, alike in self._meaning.items()
            if weakest and id_ not in self._words and alike + weakest >= least
        ]
        return by_words, by_meaning

    def relevant(self, floor: float) -> dict[str, float]:
        """The relevance of those that pass, in 0-1."""
        scores = {id_: self._relevance(id_) for id_ in self._meaning.keys() | self._words.keys()}
        return {id_: score for id_, score in scores.items() if score >= floor}

    def _relevance(self, id_: str) -> float:
        said = self._meaning.get(id_, 0.0) + self._strength(self._words.get(id_, 0.0))
        return min(1.0, said / (1 + self.coverage))

    def _least(self, floor: float) -> float:
        return floor * (1 + self.coverage)

    def _strength(self, bm25: float) -> float:
        """How well a candidate holds the words: the best as well as its share of them says, others in proportion."""
        return self.coverage * bm25 / self._words[self.best] if self.best else 0.0

    def _likeness(self, cosine: float) -> float:
        return min(1.0, max(0.0, (likeness(cosine, self._space) - _UNRELATED) / (_RELATED - _UNRELATED)))


def open_exhaustive_search(collection: str) -> ExhaustiveSearch:
    """The matcher of a collection that the settings name; one a process, for the embedded store belongs to one."""
    with _opening:
        return _opened(collection)


@cache
def _opened(collection: str) -> ExhaustiveSearch:
    chosen = embedder()
    return ExhaustiveSearch(chosen, vector_store(whole(chosen.space), collection), collection)


def scope_of(collection: str, entry_id: str) -> Scope:
    """The points of an entry."""
    return Scope(_TENANT, (collection,), DocumentRef(_TENANT, collection, entry_id).id)


def _point(document: DocumentRef) -> str:
    return Passage(document, 0, "", 0).id


def _standing(point_id: str) -> str:
    return str(uuid5(UUID(point_id), "standing"))


def _overlap(one: SparseTerms, other: Mapping[int, float]) -> float:
    """The cosine of two texts' words."""
    weights = dict(zip(one.numbers, one.weights, strict=True))
    both = sum(weight * other[number] for number, weight in weights.items() if number in other)
    sizes = sqrt(sum(each * each for each in weights.values()) * sum(each * each for each in other.values()))
    return both / sizes if sizes else 0.0
