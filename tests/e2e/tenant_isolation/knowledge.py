"""Isolation cases of collections and projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.tenant_isolation.case import IsolationCase
from tests.e2e.tenant_isolation.documents import make_document, make_findable_document, read_answers, read_document
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.api_client import ApiClient


RESEARCH = "research-agent"


def make_collection(client: ApiClient, id_: str) -> None:
    client.result(f"{RESEARCH}/manage_collections", action="create", collection_name=id_)
    client.result(f"{RESEARCH}/augment_knowledge", content="A secret about kohlrabi.", source=id_, collection=id_)
    client.result(f"{RESEARCH}/manage_projects", action="create", project_name=f"{id_}-project", collections=id_)


def make_empty_collection(client: ApiClient, id_: str) -> None:
    """Create a collection in which a search finds nothing."""
    client.result(f"{RESEARCH}/manage_collections", action="create", collection_name=f"own-{id_}")


def read_collection(client: ApiClient, id_: str) -> Any:
    return (
        client.result(f"{RESEARCH}/manage_collections", action="info", collection_name=id_),
        client.result(f"{RESEARCH}/manage_projects", action="info", project_name=f"{id_}-project"),
        client.result(f"{RESEARCH}/query_knowledge_base", query="kohlrabi", collections=id_)["results"],
    )


def make_ingestion(client: ApiClient, id_: str) -> str:
    """Start an ingestion that is large enough for a worker."""
    name = f"secret-{id_}"
    client.result(f"{RESEARCH}/manage_collections", action="create", collection_name=name)
    long = [{"path": "long.md", "content": "kohlrabi" + "\n" * 25_000}]
    job_id: str = client.result(f"{RESEARCH}/ingest_documents", collection=name, documents=long)["job_id"]
    until(lambda: read_ingestion(client, job_id)["status"] not in ("queued", "running"))
    return job_id


def read_ingestion(client: ApiClient, id_: str) -> Any:
    return client.result(f"{RESEARCH}/get_ingestion", job_id=id_)


def collection(params: Callable[[str], dict[str, Any]]) -> IsolationCase:
    """Return the case of a call that names a collection or its content."""
    return IsolationCase(params, make_collection, read_collection)


def on_collection(action: str) -> IsolationCase:
    """Return the case of an action of manage_collections."""
    return collection(lambda id_: {"action": action, "collection_name": id_})


def on_project(action: str) -> IsolationCase:
    """Return the case of an action of manage_projects that names a project and a collection."""
    return collection(lambda id_: {"action": action, "project_name": f"{id_}-project", "collections": id_})


CASES: dict[str, list[IsolationCase]] = {
    "tool-server/search": [
        IsolationCase(lambda _: {"query": "the secret number"}, make_findable_document, read_answers),
        collection(lambda _: {"query": "kohlrabi"}),
    ],
    "tool-server/fetch": [
        IsolationCase(lambda id_: {"id": f"document:{id_}"}, make_document, read_document),
        collection(lambda id_: {"id": f"knowledge:{id_}#{id_}"}),
    ],
    f"{RESEARCH}/augment_knowledge": [collection(lambda id_: {"content": "mine", "source": id_, "collection": id_})],
    f"{RESEARCH}/get_ingestion": [IsolationCase(lambda id_: {"job_id": id_}, make_ingestion, read_ingestion)],
    f"{RESEARCH}/ingest_documents": [
        collection(lambda id_: {"collection": id_, "documents": [{"path": id_, "content": "mine"}]}),
        collection(lambda id_: {"collection": id_, "remove": [id_]}),
    ],
    f"{RESEARCH}/list_documents": [collection(lambda id_: {"collection_name": id_})],
    f"{RESEARCH}/remove_document": [collection(lambda id_: {"collection_name": id_, "path": id_})],
    f"{RESEARCH}/list_passages": [collection(lambda id_: {"collection_name": id_, "path": id_})],
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
        IsolationCase(lambda _: {"query": "kohlrabi"}, make_collection, read_collection, make_empty_collection),
    ],
}
