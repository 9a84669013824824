"""agent-data/list_ancestors: the documents above a document, from the top down."""

from agent_data.stores import document_queries
from api.deployment import lambda_function, table
from api.handler import method
from shared.documents.models import AncestorList, DocumentId
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, NotFound
from shared.rpc.method import Params


class ListAncestors(Params):
    """The document."""

    document_id: DocumentId


@lambda_function(table("Documents", "BatchGetItem", "GetItem"))
@method(
    "agent-data/list_ancestors",
    role="reader",
    errors=(NotFound, Conflict),
    example={"document_id": "guide-soil"},
)
def handler(params: ListAncestors, caller: Caller) -> AncestorList:
    """List the documents above one that is not deleted, from the top down."""
    return AncestorList(document_queries(caller).ancestors(params.document_id))
