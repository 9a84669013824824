"""Isolation cases of conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.tenant_isolation.case import IsolationCase

if TYPE_CHECKING:
    from tests.helpers.api_client import ApiClient


MEMORY = "memory-server/memory"


def make_conversation(client: ApiClient, id_: str) -> None:
    for number in range(8):
        client.result(f"{MEMORY}/add_message", conversation_id=id_, role="user", content=f"secret {number}")
    client.result(f"{MEMORY}/set_summary", conversation_id=id_, summary="a secret summary")
    client.result(f"{MEMORY}/add_message", conversation_id=id_, role="user", content="secret 8")


def read_conversation(client: ApiClient, id_: str) -> Any:
    return (
        client.result(f"{MEMORY}/get_all_messages", conversation_id=id_),
        client.result(f"{MEMORY}/get_summary", conversation_id=id_),
        client.result(f"{MEMORY}/get_old_messages", conversation_id=id_),
    )


def conversation(**params: Any) -> IsolationCase:
    """Return the case of a call that names a conversation."""
    return IsolationCase(lambda id_: {"conversation_id": id_, **params}, make_conversation, read_conversation)


message_ids: dict[str, str] = {}
"""The id of each conversation's newest message, which the stranger names."""


def make_message(client: ApiClient, id_: str) -> None:
    make_conversation(client, id_)
    newest = client.result(f"{MEMORY}/list_messages", conversation_id=id_, limit=1)["messages"]
    message_ids[id_] = newest[0]["message_id"]


def name_message(id_: str) -> dict[str, Any]:
    return {"conversation_id": id_, "message_id": message_ids.get(id_, "msg")}


def make_subject(client: ApiClient, id_: str) -> None:
    client.result(f"{MEMORY}/get_or_create", conversation_id=id_, subject=f"person:{id_}")
    make_conversation(client, id_)


def read_subject(client: ApiClient, id_: str) -> Any:
    listed = client.result(f"{MEMORY}/list_conversations", subject=f"person:{id_}")
    return listed, read_conversation(client, id_)


CASES: dict[str, list[IsolationCase]] = {
    f"{MEMORY}/add_message": [conversation(role="user", content="mine")],
    f"{MEMORY}/clear": [conversation()],
    f"{MEMORY}/delete": [conversation()],
    f"{MEMORY}/delete_message": [IsolationCase(name_message, make_message, read_conversation)],
    f"{MEMORY}/erase_subject": [IsolationCase(lambda id_: {"subject": f"person:{id_}"}, make_subject, read_subject)],
    f"{MEMORY}/get_all_messages": [conversation()],
    f"{MEMORY}/get_context": [conversation(max_messages=20)],
    f"{MEMORY}/get_conversation": [conversation()],
    f"{MEMORY}/get_old_messages": [conversation()],
    f"{MEMORY}/get_or_create": [conversation()],
    f"{MEMORY}/get_or_create_summary": [conversation()],
    f"{MEMORY}/get_summary": [conversation()],
    f"{MEMORY}/list_conversations": [
        IsolationCase(lambda id_: {"limit": 1000, "prefix": id_}, make_conversation, read_conversation),
        IsolationCase(lambda id_: {"subject": f"person:{id_}"}, make_subject, read_subject),
    ],
    f"{MEMORY}/list_messages": [conversation()],
    f"{MEMORY}/search": [
        conversation(query="secret"),
        conversation(),
        IsolationCase(
            lambda id_: {"query": "secret", "conversation_prefix": id_}, make_conversation, read_conversation
        ),
        IsolationCase(lambda id_: {"query": "secret", "subject": f"person:{id_}"}, make_subject, read_subject),
    ],
    f"{MEMORY}/set_expiry": [conversation(expires_at="2020-01-01T00:00:00Z")],
    f"{MEMORY}/set_summary": [conversation(summary="mine")],
    "memory-server/resources/list": [IsolationCase(lambda _: {"limit": 1000}, make_conversation, read_conversation)],
    "memory-server/resources/read": [
        IsolationCase(lambda id_: {"uri": f"memory://conversation/{id_}"}, make_conversation, read_conversation)
    ],
}
