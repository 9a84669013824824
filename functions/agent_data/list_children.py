"""agent-data/list_children: the children of a document, in order."""

from typing import Annotated, Any

from pydantic import Field

from agent_data.stores import document_queries
from api.deployment import lambda_function, table
from api.handler import method
from shared.documents.models import ChildPage, DocumentId, ParentId
from shared.documents.queries import ChildrenQuery
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.errors import NotFound
from shared.rpc.mcp_catalog import McpTool


class ListChildren(PageParams):
    """The parent; 'root' is the top of the tree."""

    parent_id: ParentId = "root"
    deleted: Annotated[bool, Field(description="List the deleted children instead; the parent may be deleted too.")] = (
        False
    )
    from_child: Annotated[DocumentId | None, Field(description="Begin with this child.")] = None
    backwards: Annotated[bool, Field(description="List in reverse order.")] = False
    has_children: Annotated[bool, Field(description="Include `has_children` in each entry.")] = False

    def listing(self, method: str) -> tuple[str, dict[str, Any]]:
        """Leave out the first child and a field of the entries, which filter nothing."""
        return method, self.model_dump(include={"parent_id", "deleted", "backwards"})


@lambda_function(table("Documents", "BatchGetItem", "GetItem", "Query"))
@method(
    "agent-data/list_children",
    role="reader",
    errors=(NotFound,),
    example={"parent_id": "guide", "limit": 10},
    tool=McpTool(
        "List documents",
        "reads",
        "List the documents below a parent ('root' is the top of the tree), in order, without their texts. "
        "deleted: true lists those that were deleted there, which restore_document brings back. "
        "If 'next_cursor' is returned, call again with it as 'cursor'.",
    ),
)
def handler(params: ListChildren, caller: Caller) -> ChildPage:
    """List the children that are not deleted, or the deleted ones, without their bodies."""
    query = ChildrenQuery(**params.model_dump(exclude={"limit", "cursor"}))
    return document_queries(caller).children(query, params.limit, params.cursor)
