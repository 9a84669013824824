"""agent-data/list_deleted: the deleted documents of the whole tree, last deleted first."""

from agent_data.stores import document_queries
from api.deployment import lambda_function, table
from api.handler import method
from shared.documents.models import DeletedDocumentPage
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams


@lambda_function(table("Documents", "BatchGetItem", "Query"))
@method("agent-data/list_deleted", role="reader", example={"limit": 10})
def handler(params: PageParams, caller: Caller) -> DeletedDocumentPage:
    """List what restore_document can restore: documents below a deleted one return with it, and are not listed."""
    return document_queries(caller).deleted_documents(params.limit, params.cursor)
