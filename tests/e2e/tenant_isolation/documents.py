"""Isolation cases of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.tenant_isolation.case import IsolationCase
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.api_client import ApiClient


AGENT = "agent-data"


def make_document(client: ApiClient, id_: str) -> None:
    create(client, id_, "root")
    create(client, f"{id_}-child", id_)
    content = {"body": "a new secret"}
    client.result(f"{AGENT}/update_document", document_id=id_, patch={"content": content}, last_known_revision=1)


def make_deleted_document(client: ApiClient, id_: str) -> None:
    make_document(client, id_)
    client.result(f"{AGENT}/delete_document", document_id=id_, reason="secret", recursive=True)


def create(client: ApiClient, id_: str, parent: str) -> None:
    content, metadata = {"mime_type": "text/plain", "body": "secret"}, {"title": "secret"}
    client.result(
        f"{AGENT}/create_document",
        document_id=id_,
        parent_id=parent,
        content=content,
        metadata=metadata,
        request_id=f"request-{id_}",
    )


def own(client: ApiClient, id_: str) -> None:
    """Create a document of the stranger, to be moved next to the owner's."""
    client.result(
        f"{AGENT}/create_document", document_id=f"own-{id_}", parent_id="root", content={"body": "mine"}, metadata={}
    )


def read_document(client: ApiClient, id_: str) -> Any:
    return (
        client.result(f"{AGENT}/get_document", document_id=id_),
        client.result(f"{AGENT}/list_children", parent_id=id_),
        read_history(client, id_),
    )


def read_history(client: ApiClient, id_: str) -> Any:
    return [client.result(f"{AGENT}/document_history", document_id=each) for each in (id_, f"{id_}-child")]


def document(**params: Any) -> IsolationCase:
    """Return the case of a call that names a document."""
    return IsolationCase(lambda id_: {"document_id": id_, **params}, make_document, read_document)


def make_findable_document(client: ApiClient, id_: str) -> None:
    content, metadata = {"mime_type": "text/plain", "body": "the secret number"}, {"tags": [id_]}
    client.result(f"{AGENT}/create_document", document_id=id_, parent_id="root", content=content, metadata=metadata)
    until(lambda: read_answers(client, id_)["context"])


def read_answers(client: ApiClient, id_: str) -> Any:
    return client.result(f"{AGENT}/query_knowledge", **question(id_))


def question(id_: str) -> dict[str, Any]:
    """Return a query that finds only that document."""
    return {"query": "secret", "filters": {"tags": [id_]}}


def deleted_document(**params: Any) -> IsolationCase:
    """Return the case of a call that names a deleted document."""
    return IsolationCase(lambda id_: {"document_id": id_, **params}, make_deleted_document, read_history)


def beside_document(params: Callable[[str], dict[str, Any]]) -> IsolationCase:
    """Return the case of a call that names the stranger's own document and the owner's."""
    return IsolationCase(params, make_document, read_document, own)


MINE = {"content": {"body": "mine"}, "metadata": {}}
CASES: dict[str, list[IsolationCase]] = {
    f"{AGENT}/create_document": [
        document(parent_id="root", **MINE),
        IsolationCase(
            lambda id_: {"document_id": f"own-{id_}", "parent_id": id_, **MINE}, make_document, read_document
        ),
        # The owner's exact request, which must not count as its repetition.
        IsolationCase(
            lambda id_: {"document_id": id_, "parent_id": "root", "request_id": f"request-{id_}", **MINE},
            make_document,
            read_document,
        ),
        deleted_document(parent_id="root", **MINE),
    ],
    f"{AGENT}/delete_document": [document(recursive=True), document(), deleted_document()],
    f"{AGENT}/document_history": [document(), deleted_document()],
    f"{AGENT}/edit_document": [
        document(edits=[{"append": "mine"}]),
        document(edits=[{"replace": {"old": "secret", "new": "mine"}}], last_known_revision=2),
        document(edits=[{"restore_revision": 1}]),
        deleted_document(edits=[{"append": "mine"}]),
    ],
    f"{AGENT}/find_documents": [IsolationCase(lambda id_: {"query": id_}, make_document, read_document)],
    f"{AGENT}/get_document": [document(), document(revision=1), deleted_document()],
    f"{AGENT}/list_ancestors": [document(), deleted_document()],
    f"{AGENT}/list_children": [
        IsolationCase(lambda id_: {"parent_id": id_}, make_document, read_document),
        IsolationCase(lambda _: {"limit": 1000}, make_document, read_document),
    ],
    f"{AGENT}/list_deleted": [IsolationCase(lambda _: {"limit": 1000}, make_deleted_document, read_history)],
    f"{AGENT}/move_document": [
        document(new_parent_id="root"),
        beside_document(lambda id_: {"document_id": f"own-{id_}", "new_parent_id": id_}),
        beside_document(
            lambda id_: {"document_id": f"own-{id_}", "new_parent_id": "root", "position": {"before": id_}}
        ),
    ],
    f"{AGENT}/query_knowledge": [
        IsolationCase(question, make_findable_document, read_answers),
        IsolationCase(
            lambda id_: {"query": "secret", "filters": {"tags": [id_], "tenant_id": "tenant-a"}},
            make_findable_document,
            read_answers,
        ),
    ],
    f"{AGENT}/restore_document": [deleted_document(recursive=True), deleted_document()],
    f"{AGENT}/update_document": [
        document(patch=MINE, last_known_revision=2),
        document(patch=MINE, last_known_revision=7),
        document(patch=MINE),
    ],
}
