"""The order of siblings: an order key for a document among the children of its parent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import ConditionFailed, Keys, Write
from shared.documents import errors, fractional_index, keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.aws.dynamodb import Item
    from shared.documents.tree import Tree, TreePosition

_FIRST_REBALANCE: Final = 128
_LARGEST_REBALANCE: Final = 4096
_BATCH: Final = 30
"""Each document that gets a new key takes three of the 100 writes of a transaction."""


@dataclass(frozen=True, slots=True)
class SiblingPosition:
    """The wanted position among siblings: before one of them, or at an index from 0. Last without either."""

    before: str | None = None
    ordering: int | None = None


@dataclass(frozen=True, slots=True)
class _Sibling:
    key: str
    document_id: str
    delete_at: int | None = None

    @classmethod
    def of(cls, item: Item) -> _Sibling:
        return cls(item["sk"].partition("#")[0], item["document_id"], item.get("delete_at"))

    @property
    def sk(self) -> str:
        return keys.child(self.key, self.document_id)


class SiblingOrder:
    """The order of one parent's children, for a document that is inserted among them."""

    def __init__(self, tree: Tree, parent_id: str, document_id: str) -> None:
        self._tree = tree
        self._parent_id = parent_id
        self._document_id = document_id
        self._partition = keys.children(tree.tenant_id, parent_id)

    def make_room(self, target: SiblingPosition, now: int) -> str:
        """Return an order key for a position. Rebalance the siblings around it first if keys run out."""
        left, right = self._neighbours(target, now)
        key = _between(left, right)
        if key is None or len(key) > fractional_index.MAX_LENGTH:
            self._rebalance(left, right)
            left, right = self._neighbours(target, now)
            key = _between(left, right)
        if key is None:
            raise errors.too_busy(self._document_id)
        return key

    def _neighbours(self, target: SiblingPosition, now: int) -> tuple[_Sibling | None, _Sibling | None]:
        if target.before is not None:
            right = self._sibling(target.before, now)
            return self._last_before(right.sk), right
        if target.ordering is not None:
            index, left = 0, None
            for sibling in self._siblings(" "):
                if sibling.delete_at is None or sibling.delete_at > now:
                    if index == target.ordering:
                        return left, sibling
                    index += 1
                left = sibling
            return left, None
        return self._last_before("~"), None

    def _sibling(self, document_id: str, now: int) -> _Sibling:
        position = self._tree.find(document_id)
        if position is None or position.deleted(now) or position.parent_id != self._parent_id:
            raise errors.no_document(document_id, "before")
        return _Sibling(position.order_key, document_id)

    def _siblings(self, sk: str, *, backwards: bool = False) -> Iterator[_Sibling]:
        """Iterate over the siblings on one side of a sort key, nearest first. Pages are read as needed."""
        size = 4
        while True:
            side = Keys.before(sk) if backwards else Keys.after(sk)
            pages = self._tree.table.query(self._partition, side, descending=backwards, limit=size)
            items = [item for page in pages for item in page]
            yield from (_Sibling.of(item) for item in items if item["document_id"] != self._document_id)
            if len(items) < size:
                return
            sk, size = items[-1]["sk"], min(size * 4, 1024)

    def _last_before(self, sk: str) -> _Sibling | None:
        return next(self._siblings(sk, backwards=True), None)

    def _rebalance(self, left: _Sibling | None, right: _Sibling | None) -> None:
        """Give shorter keys to as few of the crowded siblings around a gap as possible.

        The siblings get keys in the gap before or after the crowd. The nearest to that gap comes first, so the order
        is right after each batch. If the new keys are not short, twice as many siblings are rebalanced.
        """
        tied = left.key if left and right and left.key == right.key else None
        before = _CrowdedSiblings(left, self._siblings(left.sk, backwards=True) if left else iter(()), tied)
        after = _CrowdedSiblings(right, self._siblings(right.sk) if right else iter(()), tied)
        size = _FIRST_REBALANCE
        while True:
            crowd = [*reversed(before.first(size)), *after.first(size)]
            pairs = _new_keys(crowd, before.beyond(size), after.beyond(size))
            longest = max((len(key) for _, key in pairs), default=fractional_index.MAX_LENGTH)
            if len(crowd) < size or len(crowd) >= _LARGEST_REBALANCE or longest <= fractional_index.REBALANCED_LENGTH:
                break
            size *= 2
        for start in range(0, len(pairs), _BATCH):
            self._rekey(pairs[start : start + _BATCH])

    def _rekey(self, pairs: list[tuple[_Sibling, str]]) -> None:
        positions = self._tree.positions(sibling.document_id for sibling, _ in pairs)
        writes = []
        for sibling, key in pairs:
            position = positions[sibling.document_id]
            if (position.parent_id, position.order_key) != (self._parent_id, sibling.key):
                raise ConditionFailed
            update = Write(
                "Update",
                self._tree.key(position.document_id),
                expression="SET order_key = :key, version = version + :one",
                condition="version = :version",
                values={":key": key, ":one": 1, ":version": position.version},
            )
            writes += [update, *relocation_writes(self._tree, position, replace(position, order_key=key))]
        self._tree.table.transact(*writes)


def relocation_writes(tree: Tree, old: TreePosition, new: TreePosition) -> list[Write]:
    """Build the writes that replace a document's entry among the children of its old parent by one under the new."""
    unchanged = tree.child_key(old) == tree.child_key(new)
    return [*([] if unchanged else [Write("Delete", tree.child_key(old))]), listing_write(tree, new)]


def listing_write(tree: Tree, position: TreePosition) -> Write:
    """Build the write that lists a document among the children of its parent."""
    item = tree.child_key(position) | {"document_id": position.document_id}
    deletion = {} if position.delete_at is None else {"delete_at": 0 if position.gone else position.delete_at}
    return Write("Put", item | deletion)


def _between(left: _Sibling | None, right: _Sibling | None) -> str | None:
    return fractional_index.between(left.key if left else None, right.key if right else None)


class _CrowdedSiblings:
    """The crowded siblings on one side of a gap, nearest first."""

    def __init__(self, nearest: _Sibling | None, others: Iterator[_Sibling], tied: str | None) -> None:
        self._unread = chain([] if nearest is None else [nearest], others)
        self._tied = tied
        self._crowd: list[_Sibling] = []
        self._end: _Sibling | None = None
        self._ended = False

    def first(self, size: int) -> list[_Sibling]:
        """Return up to `size` of them."""
        while len(self._crowd) <= size and not self._ended:
            sibling = next(self._unread, None)
            if sibling is None or (len(sibling.key) <= fractional_index.CROWDED_LENGTH and sibling.key != self._tied):
                self._end, self._ended = sibling, True
            else:
                self._crowd.append(sibling)
        return self._crowd[:size]

    def beyond(self, size: int) -> _Sibling | None:
        """Return the sibling after the first `size`, crowded or not."""
        return self._crowd[size] if len(self._crowd) > size else self._end


def _new_keys(crowd: list[_Sibling], low: _Sibling | None, high: _Sibling | None) -> list[tuple[_Sibling, str]]:
    """Return shorter keys from the gap before or after the crowd, for the sibling nearest to the gap first."""
    if not crowd:
        return []
    choices = []
    if low is None or low.key < crowd[0].key:
        new_keys = fractional_index.spread(low.key if low else None, crowd[0].key, len(crowd))
        choices.append(list(zip(crowd, new_keys, strict=True)))
    if high is None or crowd[-1].key < high.key:
        new_keys = fractional_index.spread(crowd[-1].key, high.key if high else None, len(crowd))
        choices.append(list(zip(reversed(crowd), reversed(new_keys), strict=True)))
    return min(choices, key=lambda pairs: max(len(key) for _, key in pairs), default=[])
