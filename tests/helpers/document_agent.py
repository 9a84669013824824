"""An agent that writes documents, and the invariants that a tenant's documents always satisfy."""

from __future__ import annotations

import importlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from shared.aws.dynamodb import Table, from_item
from shared.documents.keys import deleted_document
from shared.documents.names import word_items
from shared.documents.tree import MAX_DEPTH, TreePosition
from shared.documents.unit_of_work import DocumentHead
from shared.platform.config import config
from shared.rpc import timestamps
from shared.rpc.caller import ROLES, Caller
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.aws.dynamodb import Item


@dataclass(frozen=True, slots=True)
class DocumentAgent:
    """A caller of agent-data's functions for one tenant. Errors are raised."""

    tenant: str
    sub: str = "agent@example.com"
    labels: tuple[str, ...] = ("cursor",)

    def __call__(self, method: str, /, **params: Any) -> Any:
        """Return the result of a call."""
        caller = Caller(self.sub, frozenset(ROLES), self.tenant, self.labels)
        handler = importlib.import_module(f"agent_data.{method}").handler
        call = {"method": method, "params": params, "caller": caller.record(), "correlation_id": "correlated"}
        answer = handler(call, None)
        if "error" in answer:
            raise KhoError.from_record(answer["error"])
        return answer["result"]

    def create(self, document_id: str, parent_id: str = "root", body: str = "x", **params: Any) -> Any:
        """Create a document of which only the position matters."""
        content = {"mime_type": "text/plain", "body": body}
        return self("create_document", document_id=document_id, parent_id=parent_id, content=content, **params)

    def move(self, document_id: str, new_parent_id: str, **position: Any) -> Any:
        """Move a document."""
        return self("move_document", document_id=document_id, new_parent_id=new_parent_id, position=position)

    def get(self, document_id: str, **params: Any) -> Any:
        """Return a document."""
        return self("get_document", document_id=document_id, **params)

    def children(self, parent_id: str = "root", limit: int = 1000, **params: Any) -> list[str]:
        """Return the ids of all children, over as many pages as needed."""
        pages = self.pages("list_children", "children", limit, parent_id=parent_id, **params)
        return [child["document_id"] for child in pages]

    def history(self, document_id: str) -> list[Any]:
        """Return the whole audit log of a document."""
        return list(self.pages("document_history", "history", 1000, document_id=document_id))

    def pages(self, method: str, things: str, limit: int, **params: Any) -> Iterator[Any]:
        """Yield the entries of a list, over as many pages as needed."""
        cursor: dict[str, str] = {}
        while True:
            page = self(method, limit=limit, **params, **cursor)
            assert len(page[things]) <= limit
            yield from page[things]
            if "next_cursor" not in page:
                return
            cursor = {"cursor": page["next_cursor"]}


def stored_items(tenant: str) -> dict[str, dict[str, Item]]:
    """Return every item of a tenant, by partition without the tenant, and by sort key."""
    partitions: dict[str, dict[str, Item]] = defaultdict(dict)
    for page in Table(config().documents_table).scan(f"{tenant}#"):
        for item in page:
            partitions[item["pk"].removeprefix(f"{tenant}#")][item["sk"]] = item
    return partitions


def assert_consistent_tree(tenant: str, *, unfinished: bool = False) -> dict[str, TreePosition]:
    """Check that no cycle, orphan or lost document exists and that each audit log is complete. Return the positions.

    After an interrupted recursive deletion (`unfinished`), live documents may remain below deleted ones.
    """
    partitions = stored_items(tenant)
    now = timestamps.now()
    positions: dict[str, TreePosition] = {}
    for partition, items in partitions.items():
        if not partition.startswith("document#"):
            continue
        head, position = from_item(DocumentHead, items["document"]), from_item(TreePosition, items["position"])
        positions[head.document_id] = position
        assert (head.parent_id, head.delete_at, head.gone) == (position.parent_id, position.delete_at, position.gone)
        history = [item for sk, item in sorted(items.items()) if sk.startswith("history#")]
        assert [int(entry["revision"]) for entry in history] == list(range(1, head.revision + 1)), head
        assert [int(entry["from_revision"]) for entry in history] == list(range(head.revision))
        assert history[-1]["parent_id"] == head.parent_id
        contents = {int(sk.partition("#")[2]) for sk in items if sk.startswith("content#")}
        assert contents == {int(entry["content_revision"]) for entry in history}
        assert head.content_revision in contents
    listed = {
        (partition.removeprefix("children#"), sk, item["document_id"], item.get("delete_at"))
        for partition, items in partitions.items()
        if partition.startswith("children#")
        for sk, item in items.items()
    }
    assert listed == {
        (
            each.parent_id,
            f"{each.order_key}#{each.document_id}",
            each.document_id,
            0 if each.gone else each.delete_at,
        )
        for each in positions.values()
    }
    assert sorted(partitions["bin"]) == sorted(
        deleted_document(each.delete_at, each.document_id) for each in positions.values() if each.delete_at is not None
    )
    heads = [from_item(DocumentHead, items["document"]) for items in partitions.values() if "document" in items]
    assert {
        (f"{tenant}#{partition}", sk): item
        for partition, items in partitions.items()
        if partition.startswith("words#")
        for sk, item in items.items()
    } == {key: item for head in heads for key, item in word_items(tenant, head).items()}
    for each in positions.values():
        above = each
        for depth in range(1, MAX_DEPTH + 1):
            if above.parent_id == "root":
                break
            above = positions[above.parent_id]
            assert above.height >= depth or above.measuring, "the tree is higher than its documents know"
            assert (
                unfinished
                or above.delete_at is None
                or (each.delete_at is not None and each.delete_at <= max(above.delete_at, now))
            )
        else:
            raise AssertionError(f"{each.document_id} does not lead to the root")
    return positions


def expect_error(kind: type[KhoError], code: str, call: Callable[..., Any], *args: Any, **params: Any) -> KhoError:
    """Return the error of a call, which must have this kind and code."""
    with pytest.raises(kind) as raised:
        call(*args, **params)
    assert raised.value.code == code
    return raised.value


def create_chain(agent: DocumentAgent, length: int, name: str = "d") -> list[str]:
    """Create documents one below the other and return their ids."""
    names = [f"{name}{level}" for level in range(1, length + 1)]
    for parent, child in zip(["root", *names], names, strict=False):
        agent.create(child, parent)
    return names
