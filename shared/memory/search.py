"""Search of messages. The index proposes hits; the stored messages and headers decide what is returned.

A message is found as soon as it is acknowledged: it is marked as not indexed with its write, and the newest marked
messages are embedded with the question. Others are ranked by their words, in a list of their own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import Keys
from shared.memory import keys
from shared.memory.index import indexed_message
from shared.memory.message_history import is_message
from shared.memory.message_ids import message_id
from shared.memory.models import FoundMessage, FoundMessages, NumberedMessage
from shared.platform.background import map_concurrently
from shared.platform.telemetry import logger
from shared.rpc import timestamps
from shared.rpc.errors import Unavailable
from shared.rpc.response_size import SizeBudget
from shared.search.language_detection import detect_language
from shared.search.message_index import (
    CONTEXT_MESSAGES,
    MAX_UNINDEXED,
    MessageFilter,
    MessageHit,
    MessageQuestion,
    MessageRef,
    message_index,
    rank_by_words,
)
from shared.search.translations import translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from shared.aws.dynamodb import Item
    from shared.memory.conversations import ConversationHeader, Conversations
    from shared.search.message_index import IndexedMessage

_MARKED_OF_SHARD: Final = 250
"""The newest marked messages of a shard that a search reads."""
_RANKED_BY_WORDS: Final = 100
_ROUNDS: Final = 3
"""Searches for one answer, if hits of conversations that have ended take the places of others."""
_SPARE: Final = 10
"""Hits beyond the limit, for deleted messages that the index still has."""
_SCORE_DECIMALS: Final = 4
_BY_WORDS: Final = "The messages were searched by their words only, because embedding is not available."
_NO_INDEX: Final = "The index does not answer: only messages that it does not have yet were searched, by their words."


@dataclass(frozen=True, slots=True)
class _Stored:
    """A message as it is stored, with the header of its conversation."""

    header: ConversationHeader
    item: Item

    @property
    def ref(self) -> MessageRef:
        return MessageRef(self.header.generation, keys.number(self.item["sk"]))


class MessageSearch:
    """One search of a tenant's messages."""

    def __init__(self, conversations: Conversations, filter_: MessageFilter, limit: int, neighbours: int) -> None:
        self._conversations = conversations
        self._tenant_id = conversations.tenant_id
        self._subject = filter_.subject
        self._filter = replace(filter_, subject=keys.indexed_subject(filter_.subject))
        self._limit = limit
        self._neighbours = neighbours

    def newest(self) -> FoundMessages:
        """Return the newest messages, newest first."""
        marked = self._marked(self._limit)
        hits = [MessageHit(each.header.conversation_id, each.ref, 0.0) for each in marked]

        def propose(filter_: MessageFilter) -> list[MessageHit]:
            return hits + message_index().newest(self._tenant_id, filter_, self._limit + _SPARE)

        found = sorted(self._current(propose), key=lambda pair: (pair[1].item["at"], pair[1].ref.number), reverse=True)
        return FoundMessages(self._answer([(None, stored) for _, stored in found[: self._limit]], SizeBudget()))

    def answer(self, query: str) -> FoundMessages:
        """Return the messages that answer a query, best first."""
        marked = self._marked(MAX_UNINDEXED + _RANKED_BY_WORDS)
        messages = self._with_context(marked)
        degraded = ""

        def propose(filter_: MessageFilter) -> list[MessageHit]:
            nonlocal degraded
            question = MessageQuestion(query, self._tenant_id, filter_, self._limit + _SPARE, messages[:MAX_UNINDEXED])
            ranking = message_index().search(question, self._texts)
            degraded = _BY_WORDS if ranking.words_only else ""
            return ranking.hits

        waiting = messages[MAX_UNINDEXED:]
        try:
            found = self._current(propose)
        except Unavailable as error:
            logger.warning("messages searched without the index", extra={"failure": error.message})
            found, waiting, degraded = [], messages, _NO_INDEX
        budget = SizeBudget()
        answer = FoundMessages(self._answer([(hit.score, stored) for hit, stored in found[: self._limit]], budget))
        if waiting:
            stored_by_ref = {each.ref: each for each in marked}
            returned = {stored.ref for _, stored in found}
            ranked = [hit for hit in rank_by_words(query, waiting) if hit.ref not in returned][: self._limit]
            waiting_found = self._answer([(None, stored_by_ref[hit.ref]) for hit in ranked], budget, at_least=0)
            answer = replace(answer, not_yet_indexed=waiting_found)
        if degraded:
            answer = replace(answer, degraded=translate(degraded, detect_language(query)))
        return answer

    def _marked(self, limit: int) -> list[_Stored]:
        """Return the newest messages of the search that may not be indexed yet, newest first."""
        header = self._conversations.find(self._filter.conversation_id) if self._filter.conversation_id else None
        if self._filter.conversation_id and header is None:
            return []
        shards = [keys.shard_of(header.generation)] if header else range(keys.UNINDEXED_SHARDS)
        markers = [each for page in map_concurrently(self._shard, shards, len(shards)) for each in page]
        refs = {
            MessageRef(generation, int(number)): marker["conversation"]
            for marker in sorted(markers, key=lambda each: str(each["sk"]), reverse=True)
            for at, generation, number in [marker["sk"].split("#")]
            if self._is_marked_in_scope(marker["conversation"], at)
        }
        stored: list[_Stored] = []
        pending = list(refs)
        while pending and len(stored) < limit:
            batch, pending = pending[:limit], pending[limit:]
            read = self._read({refs[ref] for ref in batch}, batch)
            stored += [read[ref] for ref in batch if ref in read]
        return stored[:limit]

    def _shard(self, shard: int) -> list[Item]:
        partition = keys.unindexed(self._tenant_id, shard)
        pages = self._conversations.table.query(partition, Keys.after(" "), descending=True, limit=_MARKED_OF_SHARD)
        return [item for page in pages for item in page]

    def _is_marked_in_scope(self, conversation_id: str, at: str) -> bool:
        scope = self._filter
        return (
            scope.conversation_id in ("", conversation_id)
            and conversation_id.startswith(scope.conversation_prefix)
            and (not scope.since or timestamps.from_iso(at) >= timestamps.from_iso(scope.since))
            and (not scope.until or timestamps.from_iso(at) < timestamps.from_iso(scope.until))
        )

    def _with_context(self, marked: Sequence[_Stored]) -> list[IndexedMessage]:
        """Return messages with those that are read before them."""
        headers = {each.header.generation: each.header for each in marked}
        before = self._items(
            headers, {MessageRef(each.ref.generation, each.ref.number - n) for each in marked for n in range(1, 4)}
        )
        messages = []
        for each in marked:
            refs = [MessageRef(each.ref.generation, each.ref.number - n) for n in (3, 2, 1)]
            context = [before[ref] for ref in refs if ref in before][-CONTEXT_MESSAGES:]
            messages.append(indexed_message(each.header, each.item, context))
        return messages

    def _current(self, propose: Callable[[MessageFilter], list[MessageHit]]) -> list[tuple[MessageHit, _Stored]]:
        """Return the proposed hits that are stored, once each. Search again without conversations that have ended."""
        filter_ = self._filter
        for _ in range(_ROUNDS):
            hits = {hit.ref: hit for hit in propose(filter_)}
            stored = self._read({hit.conversation_id for hit in hits.values()}, hits)
            gone = {ref.generation for ref in hits.keys() - stored.keys()} - {ref.generation for ref in stored}
            if not gone or len(stored) >= self._limit:
                break
            filter_ = replace(filter_, excluded_generations=(*filter_.excluded_generations, *sorted(gone)))
        return [(hit, stored[ref]) for ref, hit in hits.items() if ref in stored]

    def _read(self, conversation_ids: Iterable[str], refs: Iterable[MessageRef]) -> dict[MessageRef, _Stored]:
        """Read those messages that exist and belong to the search."""
        visible = self._conversations.visible(set(conversation_ids))
        subject = self._subject
        headers = {each.generation: each for each in visible.values() if subject in ("", each.subject)}
        items = self._items(headers, refs)
        return {
            ref: _Stored(headers[ref.generation], item)
            for ref, item in items.items()
            if not self._filter.roles or item["role"] in self._filter.roles
        }

    def _items(self, headers: dict[str, ConversationHeader], refs: Iterable[MessageRef]) -> dict[MessageRef, Item]:
        """Read the messages of conversations that exist."""
        places = {
            (keys.messages(self._tenant_id, ref.generation), keys.message(ref.number))
            for ref in refs
            if ref.generation in headers and ref.number > 0
        }
        items = filter(is_message, self._conversations.table.get_all(places))
        return {MessageRef(item["pk"].rpartition("#")[2], keys.number(item["sk"])): item for item in items}

    def _texts(self, refs: Sequence[MessageRef]) -> list[str]:
        """Return the texts of indexed messages, which give a question its diacritics."""
        places = ((keys.messages(self._tenant_id, ref.generation), keys.message(ref.number)) for ref in refs)
        return [item["content"] for item in filter(is_message, self._conversations.table.get_all(places))]

    def _answer(
        self, found: Sequence[tuple[float | None, _Stored]], budget: SizeBudget, *, at_least: int = 1
    ) -> list[FoundMessage]:
        """Return the messages with their neighbours, as many as fit in a response, but at least the first ones."""
        headers = {stored.header.generation: stored.header for _, stored in found}
        around = self._items(headers, {ref for _, stored in found for ref in self._around(stored)})
        page: list[FoundMessage] = []
        for score, stored in found:
            message = self._found(score, stored, around)
            if not budget.try_add(message):
                if len(page) >= at_least:
                    break
                message = replace(message, neighbours=None)
            page.append(message)
        return page

    def _around(self, stored: _Stored) -> Iterator[MessageRef]:
        reach = self._neighbours + (min(stored.header.deletions, self._neighbours))
        for number in range(stored.ref.number - reach, stored.ref.number + reach + 1):
            if number != stored.ref.number:
                yield MessageRef(stored.ref.generation, number)

    def _found(self, score: float | None, stored: _Stored, around: dict[MessageRef, Item]) -> FoundMessage:
        near = [ref for ref in self._around(stored) if ref in around]
        before = [ref for ref in near if ref.number < stored.ref.number]
        after = [ref for ref in near if ref.number > stored.ref.number]
        chosen = before[len(before) - min(self._neighbours, len(before)) :] + after[: self._neighbours]
        neighbours = [_numbered(ref, around[ref]) for ref in chosen]
        message = _numbered(stored.ref, stored.item)
        shown = None if score is None else round(score, _SCORE_DECIMALS)
        near_by = neighbours if self._neighbours else None
        return FoundMessage(stored.header.conversation_id, **asdict(message), score=shown, neighbours=near_by)


def _numbered(ref: MessageRef, item: Item) -> NumberedMessage:
    id_ = message_id(ref.generation, ref.number)
    return NumberedMessage(id_, ref.number, item["role"], item["content"], item["at"], item.get("name"))
