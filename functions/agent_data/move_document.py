"""agent-data/move_document: bring a document, and all below it, to another place in the tree."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent_data import DocumentWriteParams, unit_of_work
from api.handler import Caller, Params, method
from shared.documents import relocation
from shared.documents.models import DocumentId, ParentId, WriteResult
from shared.documents.sibling_order import SiblingPosition
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE


class PositionParams(Params):
    """Before which sibling, or at which number from 0 on where no sibling is named; else last."""

    ordering: Annotated[int, Field(ge=0, le=2**53), WHOLE] | None = None
    before: DocumentId | None = None


class MoveDocument(DocumentWriteParams):
    """Which document, under which parent, and where among its children."""

    new_parent_id: ParentId
    position: PositionParams = PositionParams()


@method(
    "agent-data/move_document",
    role="writer",
    errors=(NotFound, Conflict),
    tool=McpTool(
        "Move a document",
        "sets",
        "Move a document, and all below it, under another parent: before a sibling (position.before), at a "
        "number from 0 on (position.ordering), or last.",
    ),
)
def handler(params: MoveDocument, caller: Caller) -> WriteResult:
    """Move the document; the tree stays a tree, whoever else is moving."""
    place = SiblingPosition(params.position.before, params.position.ordering)
    request = params.request("move_document", caller)
    return relocation.move(unit_of_work(caller), request, params.document_id, params.new_parent_id, place)
