"""agent-data: documents in a tree, which agents share (seed 000)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final

from shared.config import config
from shared.documents.changes import Changes
from shared.documents.models import DocumentId
from shared.documents.reading import Reading
from shared.documents.requests import Request
from shared.dynamodb import Table
from shared.rpc.method import Params, RequestId
from shared.rpc.offers import Resource
from shared.telemetry import current_correlation_id

if TYPE_CHECKING:
    from shared.rpc.caller import Caller


MCP_RESOURCES: Final = [
    Resource(
        uri="agent-data://document/{document_id}",
        name="document",
        title="Document",
        description="A shared document by its id: its text, metadata, place and revision, as JSON.",
        read="agent-data/get_document",
    )
]


class OfDocument(Params):
    """Parameters that name a document."""

    document_id: DocumentId


class Change(Params):
    """Parameters of a write; with a `request_id`, made once however often it is sent."""

    request_id: RequestId | None = None

    def request(self, action: str, caller: Caller) -> Request:
        """This write, as the audit log and a repetition of it know it."""
        payload = self.model_dump(exclude={"request_id"}, exclude_unset=True)
        return Request(
            action=action,
            caller=caller,
            correlation_id=current_correlation_id(),
            payload_hash=hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest(),
            request_id=self.request_id,
        )


class ChangeOfDocument(Change):
    """Parameters of a write to a document that exists."""

    document_id: DocumentId


def changes(caller: Caller) -> Changes:
    """What changes the documents of the caller's tenant."""
    return Changes(Table(config().documents_table), caller.tenant_id)


def reading(caller: Caller) -> Reading:
    """The documents of the caller's tenant, to be read."""
    return Reading(Table(config().documents_table), caller.tenant_id)
