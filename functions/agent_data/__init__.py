"""agent-data: a tree of documents that agents share."""

import hashlib
import json
from typing import Final

from shared.aws.dynamodb import Table
from shared.documents.idempotency import WriteRequest
from shared.documents.models import DocumentId
from shared.documents.queries import DocumentQueries
from shared.documents.unit_of_work import UnitOfWork
from shared.platform.config import config
from shared.platform.telemetry import current_correlation_id
from shared.rpc.caller import Caller
from shared.rpc.mcp_catalog import McpResource
from shared.rpc.method import Params, RequestId

MCP_RESOURCES: Final = [
    McpResource(
        uri="agent-data://document/{document_id}",
        name="document",
        title="Document",
        description="A shared document by its id: its text, metadata, parent and revision, as JSON.",
        read="agent-data/get_document",
    )
]


class WriteParams(Params):
    """Parameters of a write. A repetition with the same `request_id` changes nothing."""

    request_id: RequestId | None = None

    def write_request(self, action: str, caller: Caller) -> WriteRequest:
        """Return the identity of this write, for the audit log and for idempotency."""
        payload = self.model_dump(exclude={"request_id"}, exclude_unset=True)
        return WriteRequest(
            action=action,
            caller=caller,
            correlation_id=current_correlation_id(),
            payload_hash=hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest(),
            request_id=self.request_id,
        )


class DocumentWriteParams(WriteParams):
    """Parameters of a write to a document that exists."""

    document_id: DocumentId


def unit_of_work(caller: Caller) -> UnitOfWork:
    """Open a unit of work on the documents of the caller's tenant."""
    return UnitOfWork(Table(config().documents_table), caller.tenant_id)


def document_queries(caller: Caller) -> DocumentQueries:
    """Return read access to the documents of the caller's tenant."""
    return DocumentQueries(Table(config().documents_table), caller.tenant_id)
