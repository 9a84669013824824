"""Parameters of writes."""

import hashlib
import json

from shared.documents.idempotency import WriteRequest
from shared.documents.models import DocumentId
from shared.platform.telemetry import current_correlation_id
from shared.rpc.caller import Caller
from shared.rpc.method import Params, RequestId


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
            payload_hash=hashlib.sha256(json.dumps([action, payload], sort_keys=True).encode()).hexdigest(),
            request_id=self.request_id,
        )


class DocumentWriteParams(WriteParams):
    """Parameters of a write to a document that exists."""

    document_id: DocumentId
