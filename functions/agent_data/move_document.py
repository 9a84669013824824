"""agent-data/move_document: move a document, with everything below it, in the tree."""

from typing import Annotated

from pydantic import Field

from agent_data.stores import unit_of_work
from agent_data.writes import DocumentWriteParams
from api.deployment import lambda_function, table
from api.handler import method
from shared.documents import commands
from shared.documents.models import DocumentId, ParentId, WriteResult
from shared.documents.sibling_order import SiblingPosition
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE, Params


class PositionParams(Params):
    """The sibling to put the document before, or else its index from 0. Without either, it becomes the last."""

    ordering: Annotated[int, Field(ge=0, le=2**53), WHOLE] | None = None
    before: DocumentId | None = None


class MoveDocument(DocumentWriteParams):
    """The document, its new parent, and its position among the children."""

    new_parent_id: ParentId
    position: PositionParams = PositionParams()


@lambda_function(
    table("Documents", "BatchGetItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
)
@method(
    "agent-data/move_document",
    role="writer",
    errors=(NotFound, Conflict),
    example={"document_id": "draft", "new_parent_id": "guide", "position": {"before": "guide-soil"}},
    tool=McpTool(
        "Move a document",
        "sets",
        "Move a document, with everything below it, under another parent: before a sibling (position.before), at an "
        "index from 0 (position.ordering), or last.",
    ),
)
def handler(params: MoveDocument, caller: Caller) -> WriteResult:
    """Move the document. Concurrent moves cannot form a cycle."""
    target = SiblingPosition(params.position.before, params.position.ordering)
    request = params.write_request("move_document", caller)
    return commands.move(unit_of_work(caller), request, params.document_id, params.new_parent_id, target)
