"""What a tenant can have, method by method: how another asks for it, how it is made, and what its owner sees of it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.e2e.guarded import kho
from tests.mqtt import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.e2e.guarded import Client

AGENT = "agent-data"
MEMORY = "memory-server/memory"
RESEARCH = "research-agent"
OWNER = "tenant-a"
"""The tenant that has what is made here."""
DEVICES = "device-server"


@dataclass(frozen=True, slots=True)
class Case:
    """How to ask a method for something, given its id; how its owner makes it, and what the owner sees of it."""

    params: Callable[[str], dict[str, Any]]
    make: Callable[[Client, str], str | None]
    """Makes it under that id, or gives the id that it got instead."""
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


def make_findable_document(client: Client, id_: str) -> None:
    content, metadata = {"mime_type": "text/plain", "body": "the secret number"}, {"tags": [id_]}
    client.result(f"{AGENT}/create_document", document_id=id_, parent_id="root", content=content, metadata=metadata)
    deadline = time.monotonic() + 60
    while not seen_of_answers(client, id_)["context"]:  # where the machine is busy, a worker indexes it
        assert time.monotonic() < deadline
        time.sleep(0.05)


def seen_of_answers(client: Client, id_: str) -> Any:
    return client.result(f"{AGENT}/query_knowledge", **question(id_))


def question(id_: str) -> dict[str, Any]:
    """What finds that document alone."""
    return {"query": "secret", "filters": {"tags": [id_]}}


def deleted_document(**params: Any) -> Case:
    """A call that names a deleted document."""
    return Case(lambda id_: {"document_id": id_, **params}, make_deleted_document, seen_of_history)


def beside_document(params: Callable[[str], dict[str, Any]]) -> Case:
    """A call that names a document of the stranger's own, and another's beside it."""
    return Case(params, make_document, seen_of_document, own)


def make_collection(client: Client, id_: str) -> None:
    client.result(f"{RESEARCH}/manage_collections", action="create", collection_name=id_)
    client.result(f"{RESEARCH}/augment_knowledge", content="A secret about kohlrabi.", source=id_, collection=id_)
    client.result(f"{RESEARCH}/manage_projects", action="create", project_name=f"{id_}-project", collections=id_)


def make_empty_collection(client: Client, id_: str) -> None:
    """So that a search has somewhere to look, and finds nothing of its own."""
    client.result(f"{RESEARCH}/manage_collections", action="create", collection_name=f"own-{id_}")


def seen_of_collection(client: Client, id_: str) -> Any:
    return (
        client.result(f"{RESEARCH}/manage_collections", action="info", collection_name=id_),
        client.result(f"{RESEARCH}/manage_projects", action="info", project_name=f"{id_}-project"),
        client.result(f"{RESEARCH}/query_knowledge_base", query="kohlrabi", collections=id_)["results"],
    )


def make_ingestion(client: Client, id_: str) -> str:
    """Have a worker bring in what is too long to be brought in at once."""
    name = f"secret-{id_}"
    client.result(f"{RESEARCH}/manage_collections", action="create", collection_name=name)
    long = [{"path": "long.md", "content": "kohlrabi" + "\n" * 25_000}]
    job_id: str = client.result(f"{RESEARCH}/ingest_documents", collection=name, documents=long)["job_id"]
    deadline = time.monotonic() + 60
    while seen_of_ingestion(client, job_id)["status"] in ("queued", "running"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return job_id


def seen_of_ingestion(client: Client, id_: str) -> Any:
    return client.result(f"{RESEARCH}/get_ingestion", job_id=id_)


def collection(params: Callable[[str], dict[str, Any]]) -> Case:
    """A call that names a collection or what belongs to it."""
    return Case(params, make_collection, seen_of_collection)


def on_collection(action: str) -> Case:
    """An action of manage_collections."""
    return collection(lambda id_: {"action": action, "collection_name": id_})


def on_project(action: str) -> Case:
    """An action of manage_projects that names a project and a collection."""
    return collection(lambda id_: {"action": action, "project_name": f"{id_}-project", "collections": id_})


def make_device(client: Client, _id: str) -> str:
    """The one device that the server has for all cases; nothing that is asked of it changes it."""
    return device_at(client)


@cache
def device_at(client: Client) -> str:
    """Register a device, and have it tell something."""
    id_ = uuid4().hex
    register = ("devices", "register", id_, "--tenant", OWNER, "--name", "a secret lamp", "--json")
    made = kho(*register, "--data", str(client.server.data))
    assert made.returncode == 0, made.stderr
    deadline = time.monotonic() + 30
    with Wire(client.server.mqtt_port) as lamp:
        password = json.loads(made.stdout)["mqtt"]["password"]
        assert lamp.connect(id_, user_name=id_, password=password.encode()).reason == 0
        told = {"jsonrpc": "2.0", "method": "notifications/secret", "params": {}}
        lamp.publish(f"devices/{id_}/up", json.dumps({"type": "mcp", "payload": told}).encode())
        while not seen_of_device(client, id_)[1]["notifications"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    while seen_of_device(client, id_)[0].get("disconnect_reason") is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return id_


def seen_of_device(client: Client, id_: str) -> Any:
    return (
        client.result(f"{DEVICES}/devices/get", device_id=id_),
        client.result(f"{DEVICES}/notifications/list", device_id=id_),
    )


def device(**params: Any) -> Case:
    """A call that names a device."""
    return Case(lambda id_: {"device_id": id_, **params}, make_device, seen_of_device)


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
    f"{AGENT}/query_knowledge": [
        Case(question, make_findable_document, seen_of_answers),
        Case(
            lambda id_: {"query": "secret", "filters": {"tags": [id_], "tenant_id": "tenant-a"}},
            make_findable_document,
            seen_of_answers,
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
    f"{RESEARCH}/augment_knowledge": [collection(lambda id_: {"content": "mine", "source": id_, "collection": id_})],
    f"{RESEARCH}/get_ingestion": [Case(lambda id_: {"job_id": id_}, make_ingestion, seen_of_ingestion)],
    f"{RESEARCH}/ingest_documents": [
        collection(lambda id_: {"collection": id_, "documents": [{"path": id_, "content": "mine"}]}),
        collection(lambda id_: {"collection": id_, "remove": [id_]}),
    ],
    f"{RESEARCH}/manage_collections": [
        collection(lambda _: {"action": "list", "limit": 1000}),
        *(on_collection(action) for action in ("info", "delete", "create")),
        collection(lambda id_: {"action": "create", "collection_name": f"own-{id_}", "project_name": f"{id_}-project"}),
    ],
    f"{RESEARCH}/manage_projects": [
        collection(lambda _: {"action": "list"}),
        collection(lambda id_: {"action": "info", "project_name": f"{id_}-project"}),
        collection(lambda id_: {"action": "create", "project_name": f"{id_}-project"}),
        *(on_project(action) for action in ("link", "unlink", "set-defaults", "create")),
    ],
    f"{RESEARCH}/resources/read": [
        collection(lambda id_: {"uri": f"knowledge://collections/{id_}"}),
        collection(lambda _: {"uri": "knowledge://collections"}),
        collection(lambda _: {"uri": "knowledge://queries"}),
    ],
    f"{RESEARCH}/query_knowledge_base": [
        collection(lambda id_: {"query": "kohlrabi", "collections": id_}),
        collection(lambda id_: {"query": "kohlrabi", "project_name": f"{id_}-project"}),
        Case(lambda _: {"query": "kohlrabi"}, make_collection, seen_of_collection, make_empty_collection),
    ],
}

CASES |= {
    f"{DEVICES}/devices/get": [device()],
    f"{DEVICES}/devices/list": [Case(lambda _: {"limit": 1000}, make_device, seen_of_device)],
    f"{DEVICES}/notifications/list": [device()],
    f"{DEVICES}/tools/call": [device(name="self.get_device_status", timeout_ms=1000)],
    f"{DEVICES}/tools/list": [device()],
}

WITHOUT_DATA = {"tool-server/tools/list", "tool-server/tools/call"}
"""Methods that keep nothing of any tenant."""
EVERYONES = {
    f"recall-kit/{action}_experience{'s' if action == 'query' else ''}"
    for action in ("query", "submit", "get", "update", "delete", "restore")
}
"""Methods of what all tenants share."""
