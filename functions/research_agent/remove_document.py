"""research-agent/remove_document: take one document out of a collection."""

from typing import Annotated

from pydantic import Field

from api.deployment import SEARCH_INDEX, lambda_function, table
from api.handler import method
from research_agent.index import documents
from research_agent.stores import collections
from shared.knowledge.errors import not_in_collection
from shared.knowledge.models import Name, Path
from shared.knowledge.rendering import render_removal
from shared.knowledge.responses import Removal
from shared.rpc.caller import Caller
from shared.rpc.errors import FieldProblem, InvalidParams, NotFound, Unavailable
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import Params


class RemoveDocument(Params):
    """A document of a collection."""

    collection_name: Name
    path: Path
    confirm: Annotated[
        str | None, Field(max_length=900, description="If the client cannot ask its user: the path again.")
    ] = None


@lambda_function(table("Knowledge", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem"), SEARCH_INDEX)
@method(
    "research-agent/remove_document",
    role="writer",
    errors=(NotFound, Unavailable),
    example={"collection_name": "garden", "path": "well.md"},
    tool=McpTool("Remove a document", "removes", "Take one document out of a collection.", text=render_removal),
)
def handler(params: RemoveDocument, caller: Caller) -> Removal:
    """Remove the document and its passages: no search finds it from then on."""
    if params.confirm not in (None, params.path):
        raise InvalidParams(FieldProblem(field="confirm", message="should repeat the document's path"))
    collection = collections(caller).require(params.collection_name)
    if not documents(caller, collection).remove(params.path):
        raise not_in_collection(collection.name, params.path)
    return Removal(
        "success", collection.name, params.path, f"Removed {params.path} from the collection '{collection.name}'."
    )
