"""The index of messages: each is read, and its words are counted, with the two messages before it.

The index holds vectors, numbers of words and filter fields, but no text. The id of a message's point is made of its
tenant, generation and number.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from heapq import nlargest
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from shared.platform.background import submit
from shared.platform.clock import now
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable
from shared.search.bm25 import passage_terms, question_terms
from shared.search.candidates import (
    CANDIDATES,
    MAX_WORDS,
    RERANKED,
    SAME_LANGUAGE,
    CandidateSearch,
    KeywordCandidates,
)
from shared.search.diacritics import lacks_diacritics, restore_diacritics
from shared.search.embedding import embedder
from shared.search.embedding.models import current_space
from shared.search.fusion import TermRarity, rarity, similarity_of, similarity_of_tokens
from shared.search.store import Bounds, Point, Scope, VectorQuery, vector_store
from shared.search.tokenizer import has_content_word, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from shared.search.calibration import Calibration
    from shared.search.embedding import Comparison, ContextEmbedder, Embedding
    from shared.search.store import VectorStore

INDEX: Final = "messages"
CONTEXT_MESSAGES: Final = 2
"""The messages before a message that are read with it."""
MAX_UNINDEXED: Final = 24
"""The messages that a search embeds together with its question."""
_CONTEXT_CHARACTERS: Final = 4_096
"""The end of a message before another that is read with it. The model has room for fewer."""
_BATCH: Final = 16
_SPELLING_SOURCES: Final = 5
_TENTH: Final = 10
_PREFIX_BLOCK: Final = 8
"""Characters of a conversation id that a filter field holds: a prefix is some whole blocks and the beginning of one."""
_NEVER: Final = 2**53
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAMESPACE: Final = UUID("2f6f2f0e-7c55-4e5b-9a40-0a4f5a2d5f43")
_opening: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class MessageRef:
    """The identity of a message in its tenant."""

    generation: str
    number: int


@dataclass(frozen=True, slots=True)
class SpokenText:
    """A message's text and its speaker."""

    role: str
    content: str
    name: str = ""

    @property
    def embedded_text(self) -> str:
        """The text as the embedding model reads it: who speaks matters to questions about persons."""
        return f"{self.name or self.role}: {self.content}"

    @property
    def searchable_text(self) -> str:
        """The text whose words are counted. The speaker has not said the role."""
        return f"{self.name}: {self.content}" if self.name else self.content

    @property
    def ending(self) -> SpokenText:
        """The end of the message, as it is read with the next ones."""
        return replace(self, content=self.content[-_CONTEXT_CHARACTERS:])


@dataclass(frozen=True, slots=True)
class IndexedMessage:
    """A message with all by which it is found. `before` are the messages before it, oldest first."""

    ref: MessageRef
    conversation_id: str
    role: str
    content: str
    at: str
    name: str = ""
    before: tuple[SpokenText, ...] = ()
    subject: str = ""
    expires_at: str = ""

    @property
    def spoken(self) -> SpokenText:
        """The message's own text."""
        return SpokenText(self.role, self.content, self.name)

    @property
    def context(self) -> list[SpokenText]:
        """The ends of the messages that are read with it, oldest first."""
        return [each.ending for each in self.before[-CONTEXT_MESSAGES:]]


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """The messages that a search is about. Expired ones are always left out."""

    conversation_id: str = ""
    conversation_prefix: str = ""
    subject: str = ""
    roles: tuple[str, ...] = ()
    since: str = ""
    """The first time of the messages."""
    until: str = ""
    """The time that ends the messages: theirs are earlier."""
    excluded_generations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MessageQuestion:
    """A search of a tenant's messages.

    `unindexed` are messages of the filter that may not be indexed yet, at most `MAX_UNINDEXED`. They are embedded
    together with the question, and scored by the same formula.
    """

    text: str
    tenant_id: str
    filter: MessageFilter = MessageFilter()
    limit: int = 10
    unindexed: Sequence[IndexedMessage] = ()


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that was found. Its score in 0-1 is comparable between searches."""

    conversation_id: str
    ref: MessageRef
    score: float


@dataclass(frozen=True, slots=True)
class MessageRanking:
    """The hits of a search, best first. With `words_only`, embedding was not available: they were ranked by words."""

    hits: list[MessageHit]
    words_only: bool = False


class MessageIndex:
    """The messages of all tenants, each visible to its own tenant only."""

    def __init__(self, embedder: ContextEmbedder, store: VectorStore) -> None:
        self._embedder = embedder
        self._store = store
        self._candidates = CandidateSearch(store, "message")
        self._calibration = embedder.space.calibration

    def upsert(self, tenant_id: str, messages: Sequence[IndexedMessage], revision: int) -> None:
        """Index messages, unless a later revision of their generation has indexed or removed them.

        `revision` is the generation's at the time that the messages and those before them were read.
        """
        for start in range(0, len(messages), _BATCH):
            batch = messages[start : start + _BATCH]
            embeddings = self._embedder.passages_in_context(*_embedded_texts(batch))
            points = [
                Point(
                    _point_id(tenant_id, message.ref),
                    _payload(tenant_id, message, revision),
                    embedding.vector,
                    embedding.tokens,
                    _terms(message, self._calibration),
                )
                for message, embedding in zip(batch, embeddings, strict=True)
            ]
            self._store.write(points, revision)

    def remove(self, tenant_id: str, refs: Sequence[MessageRef], revision: int) -> None:
        """Remove single messages, for writers of an earlier revision, too: a record without vectors stays."""
        records = [
            Point(_point_id(tenant_id, ref), _fields(tenant_id, "", ref, revision) | {"kind": "removed"})
            for ref in refs
        ]
        self._store.write(records, revision)

    def remove_generation(self, tenant_id: str, generation: str) -> None:
        """Erase everything of a generation."""
        self._store.erase(Scope(tenant_id, document=generation))

    def remove_subject(self, tenant_id: str, subject: str) -> None:
        """Erase the messages of a subject."""
        self._store.erase(Scope(tenant_id, subject=subject))

    def remove_tenant(self, tenant_id: str) -> None:
        """Erase everything of a tenant."""
        self._store.erase(Scope(tenant_id))

    def set_fields(self, tenant_id: str, generation: str, *, subject: str = "", expires_at: str = "") -> None:
        """Set the subject and the time of expiry of a generation's messages."""
        fields = {"subject": subject, "expires": _expiry(expires_at)}
        self._store.set_fields(Scope(tenant_id, document=generation, kind="message"), fields)

    def generations(self, tenant_id: str = "") -> set[tuple[str, str]]:
        """Return the tenants and generations that have points, of one tenant or of all."""
        return {(scope.tenant_id, scope.document or "") for scope in self._store.documents(tenant_id)}

    def holds(self, tenant_id: str, refs: Sequence[MessageRef]) -> set[MessageRef]:
        """Return those of the messages that are indexed."""
        ids = {_point_id(tenant_id, ref): ref for ref in refs}
        stored = self._store.read(list(ids), ("kind",)) if ids else {}
        return {ids[id_] for id_, fields in stored.items() if fields["kind"] == "message"}

    def newest(self, tenant_id: str, filter_: MessageFilter, limit: int) -> list[MessageHit]:
        """Return the newest messages, newest first, without a score."""
        scope = replace(_scope(tenant_id, filter_), kind="message")
        return [_hit(fields, 0.0) for fields in self._store.latest(scope, limit)]

    def search(
        self, question: MessageQuestion, texts: Callable[[Sequence[MessageRef]], list[str]] = lambda _: []
    ) -> MessageRanking:
        """Return the messages that answer a question, best first. Raise `Unavailable` if the index does not answer.

        `texts` reads messages, to restore the diacritics of a question that lacks them.
        """
        query, limit, unindexed = question.text, question.limit, question.unindexed
        if not has_content_word(query):
            return MessageRanking([])
        scope = _scope(question.tenant_id, question.filter)
        asked = _Question(self._embedder, query, unindexed)
        keywords = self._candidates.by_words(
            question_terms(query, MAX_WORDS), scope, _corpus(scope), max(CANDIDATES, limit)
        )
        corrected = self._with_diacritics(query, keywords, texts)
        if corrected != query:
            asked = _Question(self._embedder, corrected, unindexed)
        try:
            embedding, compared = asked.result()
        except Unavailable as error:
            logger.warning("messages searched by words only", extra={"failure": error.message})
            embedding, compared = None, []
        scores = self._scores(embedding, keywords, scope, limit)
        payloads = self._store.read(list(scores), ("collection", "document", "number")) if scores else {}
        hits = {hit.ref: hit for hit in (_hit(fields, scores[id_]) for id_, fields in payloads.items())}
        if unindexed:
            least = _tenth(hits.values()) if embedding else 0.0
            hits |= self._unindexed_hits(unindexed, compared, keywords.rarity, least)
        best = sorted(hits.values(), key=lambda hit: (-hit.score, hit.ref.generation, hit.ref.number))
        return MessageRanking(best[:limit], words_only=embedding is None)

    def close(self) -> None:
        """Close the store. Everything written is kept."""
        self._store.close()

    def _scores(
        self, embedding: Embedding | None, keywords: KeywordCandidates, scope: Scope, limit: int
    ) -> dict[str, float]:
        """Return the scores of the best indexed messages."""
        strengths = {id_: keywords.rarity.strength(bm25) for id_, bm25 in keywords.scores.items()}
        if embedding is None:
            by_words = {id_: self._score(None, None, strength) for id_, strength in strengths.items()}
            return {id_: by_words[id_] for id_ in keywords.best(limit)}
        semantic = self._candidates.by_meaning(embedding, None, scope, max(CANDIDATES, limit), tuple(keywords.scores))
        self._candidates.fill_gaps(semantic, keywords, scope)
        strengths = {id_: keywords.rarity.strength(bm25) for id_, bm25 in keywords.scores.items()}
        scores = {id_: self._score(cosine, None, strengths.get(id_, 0.0)) for id_, cosine in semantic.scores.items()}
        best = sorted(scores, key=lambda id_: (-scores[id_], id_))[: max(RERANKED, limit)]
        if not (embedding.tokens and best):
            return {id_: scores[id_] for id_ in best}
        (sums,) = self._store.search([VectorQuery(embedding.tokens, replace(scope, ids=tuple(best)), len(best))])
        count = len(embedding.tokens)
        return {
            id_: self._score(semantic.scores[id_], sums[id_] / count, strengths.get(id_, 0.0))
            for id_ in best
            if id_ in sums  # else removed in the meantime
        }

    def _score(self, whole: float | None, tokens: float | None, strength: float) -> float:
        """Return the score in 0-1 of a message: its similarity, and with less weight its words."""
        scale = self._calibration
        if tokens is not None:
            return _weighted(similarity_of_tokens(tokens, scale), scale.message_words, strength)
        similarity = 0.0 if whole is None else similarity_of(whole, scale)
        return _weighted(similarity, scale.message_words_without_tokens, strength)

    def _unindexed_hits(
        self, messages: Sequence[IndexedMessage], compared: Sequence[Comparison], rarities: TermRarity, least: float
    ) -> dict[MessageRef, MessageHit]:
        """Score messages that are not indexed by the same formula.

        If their vectors cannot be compared, those with words of the question get the score `least`, or that of their
        words if it is higher.
        """
        hits = {}
        for message, comparison in zip_longest(messages, compared):
            strength = _strength(message, rarities, self._calibration)
            if comparison:
                score = self._score(comparison.whole, comparison.tokens, strength)
            elif strength:
                score = max(least, self._score(None, None, strength))
            else:
                continue
            hits[message.ref] = MessageHit(message.conversation_id, message.ref, score)
        return hits

    def _with_diacritics(
        self, query: str, keywords: KeywordCandidates, texts: Callable[[Sequence[MessageRef]], list[str]]
    ) -> str:
        """Return the question with its diacritics, if the best messages by words have some."""
        if keywords.coverage < SAME_LANGUAGE or not lacks_diacritics(query):
            return query
        fields = ("document", "number", "accented")
        stored = self._store.read(keywords.best(_SPELLING_SOURCES), fields).values()
        refs = [MessageRef(each["document"], each["number"]) for each in stored if each["accented"]]
        return restore_diacritics(query, texts(refs)) if refs else query


class _Question:
    """The embedding of a question, and its comparison with messages that are not indexed, in the background."""

    def __init__(self, embedder: ContextEmbedder, query: str, unindexed: Sequence[IndexedMessage]) -> None:
        self._embedding: Future[Embedding] = submit(embedder.prepare_question(query))
        self._compared: Future[list[Comparison]] | None = None
        if unindexed:
            self._compared = submit(lambda: embedder.compare(query, *_embedded_texts(unindexed)))

    def result(self) -> tuple[Embedding, list[Comparison]]:
        """Wait for both, or raise `Unavailable`."""
        return self._embedding.result(), self._compared.result() if self._compared else []


def message_index() -> MessageIndex:
    """Return the process-wide index. The embedded store allows one instance per process."""
    with _opening:  # two first callers must not open it twice
        return _open_index()


def close_message_index() -> None:
    """Close this process's index, if it is open."""
    with _opening:
        if _open_index.cache_info().currsize:
            _open_index().close()


@cache
def _open_index() -> MessageIndex:
    message_embedder = embedder()
    return MessageIndex(message_embedder, vector_store(message_embedder.space, INDEX))


def rank_by_words(query: str, messages: Sequence[IndexedMessage]) -> list[MessageHit]:
    """Return the messages that have words of `query`, best first, without an index and a model."""
    calibration = current_space().calibration
    if not has_content_word(query):
        return []
    rarities = rarity(question_terms(query, MAX_WORDS), {}, len(messages))
    scored = [(message, _strength(message, rarities, calibration)) for message in messages]
    hits = [MessageHit(message.conversation_id, message.ref, strength) for message, strength in scored if strength]
    return sorted(hits, key=lambda hit: (-hit.score, hit.ref.generation, -hit.ref.number))


def _tenth(hits: Iterable[MessageHit]) -> float:
    """Return the score of the tenth hit, or of the last one."""
    return min(nlargest(_TENTH, (hit.score for hit in hits)), default=0.0)


def _weighted(similarity: float, words: float, strength: float) -> float:
    return (similarity + words * strength) / (1 + words)


def _embedded_texts(messages: Sequence[IndexedMessage]) -> tuple[list[str], list[list[str]]]:
    """Return the texts of messages, and those read before each."""
    texts = [message.spoken.embedded_text for message in messages]
    return texts, [[each.embedded_text for each in message.context] for message in messages]


def _terms(message: IndexedMessage, calibration: Calibration) -> Any:
    before = [each.searchable_text for each in message.context]
    return passage_terms(message.spoken.searchable_text, before, calibration.words_before)


def _strength(message: IndexedMessage, rarities: TermRarity, calibration: Calibration) -> float:
    terms = _terms(message, calibration)
    return rarities.strength(rarities.bm25(dict(zip(terms.numbers, terms.weights, strict=True))))


def _payload(tenant_id: str, message: IndexedMessage, revision: int) -> dict[str, Any]:
    return _fields(tenant_id, message.conversation_id, message.ref, revision) | {
        "tags": _prefix_tags(message.conversation_id),
        "role": message.role,
        "subject": message.subject,
        "at": _microseconds(message.at),
        "expires": _expiry(message.expires_at),
        "accented": any(word.twin for word in tokenize(message.content)),
    }


def _fields(tenant_id: str, conversation_id: str, ref: MessageRef, revision: int) -> dict[str, Any]:
    return {
        "tenant": tenant_id,
        "collection": conversation_id,
        "document": ref.generation,
        "number": ref.number,
        "kind": "message",
        "version": revision,
    }


def _hit(fields: Mapping[str, Any], score: float) -> MessageHit:
    return MessageHit(fields["collection"], MessageRef(fields["document"], fields["number"]), score)


def _scope(tenant_id: str, filter_: MessageFilter) -> Scope:
    bounds = [Bounds("expires", start=_microseconds(now()) + 1)]
    if filter_.since or filter_.until:
        limits = (_microseconds(limit) if limit else None for limit in (filter_.since, filter_.until))
        bounds.append(Bounds("at", *limits))
    return Scope(
        tenant_id,
        (filter_.conversation_id,) if filter_.conversation_id else None,
        tags=tuple(_covering_tags(filter_.conversation_prefix)),
        roles=filter_.roles,
        subject=filter_.subject or None,
        excluded_documents=filter_.excluded_generations,
        bounds=tuple(bounds),
    )


def _corpus(scope: Scope) -> Scope:
    """Return the scope in which rarity is counted: whole conversations."""
    return replace(scope, roles=(), excluded_documents=(), bounds=())


def _prefix_tags(conversation_id: str) -> list[str]:
    """Return the tags of all prefixes of an id: each beginning of each of its blocks."""
    ends = range(1, len(conversation_id) + 1)
    return [_block_tag(conversation_id, end) for end in ends]


def _covering_tags(prefix: str) -> list[str]:
    """Return the tags that only ids with this prefix have."""
    ends = [*range(_PREFIX_BLOCK, len(prefix), _PREFIX_BLOCK), *([len(prefix)] if prefix else [])]
    return [_block_tag(prefix, end) for end in ends]


def _block_tag(text: str, end: int) -> str:
    block = (end - 1) // _PREFIX_BLOCK
    return f"{block}:{text[block * _PREFIX_BLOCK : end]}"


def _microseconds(at: str) -> int:
    return (datetime.fromisoformat(at).astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def _expiry(at: str) -> int:
    return _microseconds(at) if at else _NEVER


def _point_id(tenant_id: str, ref: MessageRef) -> str:
    return str(uuid5(_NAMESPACE, "\0".join((tenant_id, ref.generation, str(ref.number)))))
