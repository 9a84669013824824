"""Index changed documents of agent-data that were not indexed with their write, and remove deleted ones."""

from api.deployment import (
    BULK_EMBEDDING_INDEX,
    INDEX_RECOVERY_SECONDS,
    SPLITTING,
    TableStream,
    change,
    lambda_function,
    table,
)
from api.stream_records import StreamRecord, stream_worker
from shared.aws.dynamodb import Table
from shared.documents import keys
from shared.documents.deletion import schedule_deletion_event
from shared.documents.index import refresh_document
from shared.platform.config import config


@lambda_function(
    table("Documents", "GetItem", "PutItem", "Query"),
    BULK_EMBEDDING_INDEX,
    SPLITTING,
    timeout=900,
    stream=TableStream(
        table="Documents",
        filters=(
            change(sk="document"),
            change("REMOVE", sk="deletion"),
        ),
        batch_size=10,
        max_age=INDEX_RECOVERY_SECONDS,
        parallelization=4,
    ),
)
@stream_worker("workers/index_documents")
def handler(record: StreamRecord) -> None:
    """Index the document of a stream record. The stream retries while the index is unavailable."""
    if not config().has_index:
        return
    tenant_id, document_id = keys.document_of(record.pk)
    schedule_deletion_event(Table(config().documents_table), tenant_id, document_id)
    refresh_document(tenant_id, document_id)
