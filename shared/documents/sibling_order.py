"""The places of siblings: a key for a document among the children of its parent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from shared.documents import errors, fractional_index, keys
from shared.dynamodb import ConditionFailed, Keys, Write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.documents.tree import Tree, TreePosition
    from shared.dynamodb import Item

_FEWEST: Final = 128
_MOST: Final = 4096
_BATCH: Final = 30
"""Each document that gets another key takes three writes of a transaction's hundred."""


@dataclass(frozen=True, slots=True)
class SiblingPosition:
    """Where among its siblings a document is to stand: before one, or at a number from 0 on; else last."""

    before: str | None = None
    ordering: int | None = None


@dataclass(frozen=True, slots=True)
class _Sibling:
    key: str
    document_id: str
    delete_at: int | None = None

    @classmethod
    def of(cls, item: Item) -> _Sibling:
        delete_at = int(item["delete_at"]) if "delete_at" in item else None
        return cls(item["sk"].partition("#")[0], item["document_id"], delete_at)

    @property
    def sk(self) -> str:
        return keys.child(self.key, self.document_id)


class SiblingOrder:
    """The places below one parent, for one document that is to stand there."""

    def __init__(self, tree: Tree, parent_id: str, document_id: str) -> None:
        self._tree = tree
        self._parent_id = parent_id
        self._document_id = document_id
        self._partition = keys.children(tree.tenant_id, parent_id)

    def key(self, place: SiblingPosition, now: int) -> str:
        """A key that brings the document to its place; makes room first where siblings stand too close."""
        left, right = self._neighbours(place, now)
        key = _between(left, right)
        if key is None or len(key) > fractional_index.LONGEST:
            self._make_room(left, right)
            left, right = self._neighbours(place, now)
            key = _between(left, right)
        if key is None:
            raise errors.too_busy(self._document_id)
        return key

    def _neighbours(self, place: SiblingPosition, now: int) -> tuple[_Sibling | None, _Sibling | None]:
        if place.before is not None:
            right = self._sibling(place.before, now)
            return self._last_before(right.sk), right
        if place.ordering is not None:
            number, left = 0, None
            for sibling in self._siblings(" "):
                if sibling.delete_at is None or sibling.delete_at > now:
                    if number == place.ordering:
                        return left, sibling
                    number += 1
                left = sibling
            return left, None
        return self._last_before("~"), None

    def _sibling(self, document_id: str, now: int) -> _Sibling:
        position = self._tree.find(document_id)
        if position is None or position.deleted(now) or position.parent_id != self._parent_id:
            raise errors.no_document(document_id, "before")
        return _Sibling(position.order_key, document_id)

    def _siblings(self, sk: str, *, backwards: bool = False) -> Iterator[_Sibling]:
        """The siblings on one side of a sort key, nearest first, read as far as they are asked for."""
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

    def _make_room(self, left: _Sibling | None, right: _Sibling | None) -> None:
        """Give shorter keys to those who stand too close to each other about a place, and to no more than it takes.

        They go one after another to the gap at either end of them, the nearest to it first, so that the order is
        right at every moment. Where so few as were tried find no short keys there, twice as many are.
        """
        tied = left.key if left and right and left.key == right.key else None
        before = _CrowdedSiblings(left, self._siblings(left.sk, backwards=True) if left else iter(()), tied)
        after = _CrowdedSiblings(right, self._siblings(right.sk) if right else iter(()), tied)
        size = _FEWEST
        while True:
            moving = [*reversed(before.first(size)), *after.first(size)]
            pairs = _new_keys(moving, before.beyond(size), after.beyond(size))
            longest = max((len(key) for _, key in pairs), default=fractional_index.LONGEST)
            if len(moving) < size or len(moving) >= _MOST or longest <= fractional_index.SHORT:
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
            writes += self._rekeyed(position, key)
        self._tree.table.transact(*writes)

    def _rekeyed(self, position: TreePosition, key: str) -> list[Write]:
        return [
            Write(
                "Update",
                self._tree.key(position.document_id),
                expression="SET order_key = :key, version = version + :one",
                condition="version = :version",
                values={":key": key, ":one": 1, ":version": position.version},
            ),
            *relocation_writes(self._tree, position, replace(position, order_key=key)),
        ]


def relocation_writes(tree: Tree, old: TreePosition, new: TreePosition) -> list[Write]:
    """What takes a document from its place among the children of a parent to another place."""
    kept = tree.child_key(old) == tree.child_key(new)
    return [*([] if kept else [Write("Delete", tree.child_key(old))]), listing_writes(tree, new)]


def listing_writes(tree: Tree, position: TreePosition) -> Write:
    """What lists a document among the children of its parent."""
    item = tree.child_key(position) | {"document_id": position.document_id}
    return Write("Put", item if position.delete_at is None else item | {"delete_at": position.delete_at})


def _between(left: _Sibling | None, right: _Sibling | None) -> str | None:
    return fractional_index.between(left.key if left else None, right.key if right else None)


class _CrowdedSiblings:
    """Those on one side of a place who stand too close to each other, nearest first."""

    def __init__(self, nearest: _Sibling | None, others: Iterator[_Sibling], tied: str | None) -> None:
        self._coming = chain([] if nearest is None else [nearest], others)
        self._tied = tied
        self._found: list[_Sibling] = []
        self._end: _Sibling | None = None
        self._ended = False

    def first(self, size: int) -> list[_Sibling]:
        """As many of them as there are, up to `size`."""
        while len(self._found) <= size and not self._ended:
            sibling = next(self._coming, None)
            if sibling is None or (len(sibling.key) <= fractional_index.LONG and sibling.key != self._tied):
                self._end, self._ended = sibling, True
            else:
                self._found.append(sibling)
        return self._found[:size]

    def beyond(self, size: int) -> _Sibling | None:
        """Who follows after the first `size`, crowded or not."""
        return self._found[size] if len(self._found) > size else self._end


def _new_keys(moving: list[_Sibling], low: _Sibling | None, high: _Sibling | None) -> list[tuple[_Sibling, str]]:
    """New keys in the wider gap at either end, for the nearest to it first."""
    if not moving:
        return []
    choices = []
    if low is None or low.key < moving[0].key:
        made = fractional_index.spread(low.key if low else None, moving[0].key, len(moving))
        choices.append(list(zip(moving, made, strict=True)))
    if high is None or moving[-1].key < high.key:
        made = fractional_index.spread(moving[-1].key, high.key if high else None, len(moving))
        choices.append(list(zip(reversed(moving), reversed(made), strict=True)))
    return min(choices, key=lambda pairs: max(len(key) for _, key in pairs), default=[])
