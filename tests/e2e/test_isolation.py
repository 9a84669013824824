"""Tenants do not touch: what another tenant has is answered as what does not exist, at every method and door."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from shared.rpc.catalogue import catalogue
from tests.e2e.guarded import Client, make_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.server import Server

AGENT = "agent-data"
MEMORY = "memory-server/memory"


@dataclass(frozen=True, slots=True)
class Case:
    """How to ask a method for something, given its id; how its owner makes it, and what the owner sees of it."""

    params: Callable[[str], dict[str, Any]]
    make: Callable[[Client, str], None]
    seen: Callable[[Client, str], Any]
    prepare: Callable[[Client, str], None] = lambda _client, _id: None
    """What the stranger needs of its own to ask."""


def make_conversation(client: Client, id_: str) -> None:
    for number in range(8):
        client.result(f"{MEMORY}/add_message", conversation_id=id_, role="user", content=f"secret {number}")
    client.result(f"{MEMORY}/set_summary", conversation_id=id_, summary="a secret summary")
    client.result(f"{MEMORY}/add_message", conversation_id=id_, role="user", content="secret 8")


def seen_of_conversation(client: Client, id_: str) -> Any:
    return (
        client.result(f"{MEMORY}/get_all_messages", conversation_id=id_),
        client.result(f"{MEMORY}/get_summary", conversation_id=id_),
        client.result(f"{MEMORY}/get_old_messages", conversation_id=id_),
    )


def conversation(**params: Any) -> Case:
    """A call that names a conversation."""
    return Case(lambda id_: {"conversation_id": id_, **params}, make_conversation, seen_of_conversation)


def make_document(client: Client, id_: str) -> None:
    create(client, id_, "root")
    create(client, f"{id_}-child", id_)
    content = {"body": "a new secret"}
    client.result(f"{AGENT}/update_document", document_id=id_, patch={"content": content}, last_known_revision=1)


def make_deleted_document(client: Client, id_: str) -> None:
    make_document(client, id_)
    client.result(f"{AGENT}/delete_document", document_id=id_, reason="secret", recursive=True)


def create(client: Client, id_: str, parent: str) -> None:
    content, metadata = {"mime_type": "text/plain", "body": "secret"}, {"title": "secret"}
    client.result(
        f"{AGENT}/create_document",
        document_id=id_,
        parent_id=parent,
        content=content,
        metadata=metadata,
        request_id=f"request-{id_}",
    )


def own(client: Client, id_: str) -> None:
    """A document of the stranger's own, to be brought near what is another's."""
    client.result(
        f"{AGENT}/create_document", document_id=f"own-{id_}", parent_id="root", content={"body": "mine"}, metadata={}
    )


def seen_of_document(client: Client, id_: str) -> Any:
    return (
        client.result(f"{AGENT}/get_document", document_id=id_),
        client.result(f"{AGENT}/list_children", parent_id=id_),
        seen_of_history(client, id_),
    )


def seen_of_history(client: Client, id_: str) -> Any:
    return [client.result(f"{AGENT}/document_history", document_id=each) for each in (id_, f"{id_}-child")]


def document(**params: Any) -> Case:
    """A call that names a document."""
    return Case(lambda id_: {"document_id": id_, **params}, make_document, seen_of_document)


def deleted_document(**params: Any) -> Case:
    """A call that names a deleted document."""
    return Case(lambda id_: {"document_id": id_, **params}, make_deleted_document, seen_of_history)


def beside_document(params: Callable[[str], dict[str, Any]]) -> Case:
    """A call that names a document of the stranger's own, and another's beside it."""
    return Case(params, make_document, seen_of_document, own)


MINE = {"content": {"body": "mine"}, "metadata": {}}
CASES: dict[str, list[Case]] = {
    f"{AGENT}/create_document": [
        document(parent_id="root", **MINE),
        Case(lambda id_: {"document_id": f"own-{id_}", "parent_id": id_, **MINE}, make_document, seen_of_document),
        # The very request that the owner has made: not a repetition of it.
        Case(
            lambda id_: {"document_id": id_, "parent_id": "root", "request_id": f"request-{id_}", **MINE},
            make_document,
            seen_of_document,
        ),
        deleted_document(parent_id="root", **MINE),
    ],
    f"{AGENT}/delete_document": [document(recursive=True), document(), deleted_document()],
    f"{AGENT}/document_history": [document(), deleted_document()],
    f"{AGENT}/get_document": [document(), document(revision=1), deleted_document()],
    f"{AGENT}/list_children": [
        Case(lambda id_: {"parent_id": id_}, make_document, seen_of_document),
        Case(lambda _: {"limit": 1000}, make_document, seen_of_document),
    ],
    f"{AGENT}/move_document": [
        document(new_parent_id="root"),
        beside_document(lambda id_: {"document_id": f"own-{id_}", "new_parent_id": id_}),
        beside_document(
            lambda id_: {"document_id": f"own-{id_}", "new_parent_id": "root", "position": {"before": id_}}
        ),
    ],
    f"{AGENT}/restore_document": [deleted_document(recursive=True), deleted_document()],
    f"{AGENT}/update_document": [
        document(patch=MINE, last_known_revision=2),
        document(patch=MINE, last_known_revision=7),
        document(patch=MINE),
    ],
    f"{MEMORY}/add_message": [conversation(role="user", content="mine")],
    f"{MEMORY}/clear": [conversation()],
    f"{MEMORY}/delete": [conversation()],
    f"{MEMORY}/get_all_messages": [conversation()],
    f"{MEMORY}/get_context": [conversation(max_messages=20)],
    f"{MEMORY}/get_old_messages": [conversation()],
    f"{MEMORY}/get_or_create": [conversation()],
    f"{MEMORY}/get_or_create_summary": [conversation()],
    f"{MEMORY}/get_summary": [conversation()],
    f"{MEMORY}/set_summary": [conversation(summary="mine")],
    "memory-server/resources/list": [Case(lambda _: {"limit": 1000}, make_conversation, seen_of_conversation)],
    "memory-server/resources/read": [
        Case(lambda id_: {"uri": f"memory://conversation/{id_}"}, make_conversation, seen_of_conversation)
    ],
}

WITHOUT_DATA = {"tool-server/tools/list", "tool-server/tools/call"}
"""Methods that keep nothing of any tenant."""


@pytest.fixture(scope="module")
def owner(guarded: Server) -> Client:
    return Client(guarded, make_key(guarded.data, "tenant-a", "admin")["key"])


@pytest.fixture(scope="module")
def stranger(guarded: Server) -> Client:
    """Another tenant's caller, with every role; its name begins as the owner's does."""
    return Client(guarded, make_key(guarded.data, "tenant-ab", "admin")["key"])


def test_every_method_has_its_case() -> None:
    """A new method needs a case here, or a place among those that keep nothing."""
    assert set(CASES) | WITHOUT_DATA == set(catalogue().methods)


def doors_of(method: str) -> list[str]:
    return ["direct", "jsonrpc", "action"] if method.startswith(AGENT) else ["direct", "jsonrpc"]


@pytest.mark.parametrize(
    ("method", "number", "door"),
    [
        (method, number, door)
        for method in sorted(CASES)
        for number in range(len(CASES[method]))
        for door in doors_of(method)
    ],
)
def test_what_another_tenant_has_does_not_exist(
    owner: Client, stranger: Client, method: str, number: int, door: str
) -> None:
    case, theirs, nothing = CASES[method][number], uuid4().hex, uuid4().hex
    ask: Callable[..., tuple[int, Any]] = getattr(stranger, door)
    case.make(owner, theirs)
    before = case.seen(owner, theirs)
    assert "secret" in json.dumps(before)
    case.prepare(stranger, nothing)
    for_nothing = comparable(ask(method, **case.params(nothing)), nothing)
    case.prepare(stranger, theirs)
    for_theirs = comparable(ask(method, **case.params(theirs)), theirs)
    assert for_theirs == for_nothing
    assert "secret" not in for_theirs
    assert case.seen(owner, theirs) == before


def comparable(answer: tuple[int, Any], id_: str) -> str:
    """Status and body, without the id that was asked for and the time of asking."""
    text = json.dumps(answer).replace(id_, "<id>")
    return re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "<time>", text)


def test_cursors_lead_nowhere_else(owner: Client, stranger: Client) -> None:
    id_ = uuid4().hex
    make_conversation(owner, id_)
    make_conversation(stranger, id_)
    cursor = owner.result(f"{MEMORY}/get_all_messages", conversation_id=id_, limit=2)["next_cursor"]
    status, body = stranger.direct(f"{MEMORY}/get_all_messages", conversation_id=id_, cursor=cursor)
    assert (status, body["error"]["details"][0]["field"]) == (400, "cursor")
    for _ in range(2):
        owner.result(f"{MEMORY}/get_or_create", conversation_id=uuid4().hex)
    cursor = owner.result("memory-server/resources/list", limit=1)["nextCursor"]
    mine = {each["uri"] for each in stranger.result("memory-server/resources/list", limit=1000)["resources"]}
    from_theirs = stranger.result("memory-server/resources/list", limit=1000, cursor=cursor)["resources"]
    assert {each["uri"] for each in from_theirs} <= mine


def test_the_same_id_is_each_tenants_own(owner: Client, stranger: Client) -> None:
    id_ = uuid4().hex
    for client, words in ((owner, "of a"), (stranger, "of b")):
        client.result(f"{MEMORY}/add_message", conversation_id=id_, role="user", content=words)
    for client, words in ((owner, "of a"), (stranger, "of b")):
        messages = client.result(f"{MEMORY}/get_all_messages", conversation_id=id_)["messages"]
        assert [each["content"] for each in messages] == [words]
    stranger.result(f"{MEMORY}/delete", conversation_id=id_)
    assert owner.result(f"{MEMORY}/get_context", conversation_id=id_)["messages"] == [
        {"role": "user", "content": "of a"}
    ]
