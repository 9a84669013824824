"""research-agent/manage_collections: create, list, delete and describe collections."""

import contextlib
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from api.deployment import SEARCH_INDEX, lambda_function, table
from api.handler import method
from research_agent.index import documents
from research_agent.stores import collections, projects
from shared.knowledge.errors import collection_incomplete
from shared.knowledge.models import Collection, CollectionType, Name, Project
from shared.knowledge.recorded_space import recorded_space
from shared.knowledge.rendering import render_collections
from shared.knowledge.responses import CollectionAction, CollectionInfo, CollectionsResult
from shared.rpc.caller import Caller
from shared.rpc.cursor import Cursor, Limit
from shared.rpc.errors import Conflict, FieldProblem, InvalidParams, InvalidRequest, NotFound, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params
from shared.rpc.names import refuse_deceptive_name
from shared.search.index import knowledge_index


class ManageCollections(Params):
    """An action on a collection. Lists are paged."""

    action: Annotated[CollectionAction, Field(examples=["list"])]
    collection_name: Annotated[Name | None, Field(description="Required except for 'list'.", examples=["notes"])] = None
    collection_type: Annotated[
        CollectionType | None,
        Field(description="For 'create'. Default: project-specific if a project is named, else fundamental."),
    ] = None
    project_name: Annotated[Name | None, Field(description="For 'create': link the collection to this project.")] = None
    confirm: Annotated[
        str | None,
        Field(max_length=200, description="For 'delete', if the client cannot ask its user: the name again."),
    ] = None
    limit: Limit = 100
    cursor: Cursor | None = None


@lambda_function(table("Knowledge", "DeleteItem", "GetItem", "PutItem", "Query"), SEARCH_INDEX)
@method(
    "research-agent/manage_collections",
    role="reader",
    errors=(NotFound, InvalidRequest, Conflict),
    example={"action": "info", "collection_name": "garden"},
    tool=McpTool(
        "Manage collections",
        "removes",
        "Create, list, describe ('info') or delete knowledge collections. Deleting removes every document in it.",
        text=render_collections,
    ),
)
def handler(params: ManageCollections, caller: Caller) -> CollectionsResult:
    """Run the action."""
    if params.action == "list":
        return _list(params, caller)
    if params.collection_name is None:
        raise collection_incomplete(params.action, "collection_name")
    match params.action:
        case "create":
            caller.require("writer")
            return _create(params, params.collection_name, caller)
        case "delete":
            caller.require("writer")
            if params.confirm not in (None, params.collection_name):
                raise InvalidParams(FieldProblem(field="confirm", message="should repeat the collection's name"))
            return _delete(params.collection_name, caller)
        case "info":
            return _describe(params, params.collection_name, caller)


def _create(params: ManageCollections, name: str, caller: Caller) -> CollectionsResult:
    refuse_deceptive_name(name, "collection_name")
    linked = [params.project_name] if params.project_name else []
    for project in linked:
        projects(caller).require(project)
    collection_type = params.collection_type or ("project-specific" if linked else "fundamental")
    collection = collections(caller).create(name, collection_type, recorded_space())
    for project in linked:
        projects(caller).link(project, [name])
    info = CollectionInfo(
        name, collection_type, 0, 0, collection.space.model, collection.space.dimensions, collection.created_at, linked
    )
    return CollectionsResult("success", "create", f"Created the {collection_type} collection '{name}'.", info)


def _list(params: ManageCollections, caller: Caller) -> CollectionsResult:
    page, next_cursor = collections(caller).page(params.limit, params.cursor)
    linked = projects(caller).list_all()
    message = f"{len(page)} collection{'' if len(page) == 1 else 's'}."
    return CollectionsResult(
        "success",
        "list",
        message,
        collections=[_info(each, linked, caller) for each in page],
        next_cursor=next_cursor,
    )


def _describe(params: ManageCollections, name: str, caller: Caller) -> CollectionsResult:
    collection = collections(caller).require(name)
    stored, next_cursor = documents(caller, collection).page(params.limit, params.cursor)
    info = _info(collection, projects(caller).list_all(), caller)
    message = f"The collection '{name}' holds {info.documents} documents in {info.chunks} chunks."
    return CollectionsResult("success", "info", message, info, documents=stored, next_cursor=next_cursor)


def _delete(name: str, caller: Caller) -> CollectionsResult:
    deleted = collections(caller).delete(name)
    projects(caller).forget(deleted.name)
    # If the index is unavailable, the stream's worker deletes the passages. The collection is no longer searched.
    with contextlib.suppress(Unavailable):
        knowledge_index().delete_collection(caller.tenant_id, deleted.id)
    return CollectionsResult("success", "delete", f"Deleted the collection '{name}' and everything in it.")


def _info(collection: Collection, linked: Sequence[Project], caller: Caller) -> CollectionInfo:
    count, chunks = documents(caller, collection).size()
    names = [each.name for each in linked if collection.name in each.collections]
    space = collection.space
    return CollectionInfo(
        collection.name, collection.type, count, chunks, space.model, space.dimensions, collection.created_at, names
    )
