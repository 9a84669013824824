"""Embed texts of bulk work, for which no caller waits: of large documents, ingestion jobs and reindexing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.deployment import EMBEDDING_MODEL, lambda_function
from shared.platform.lanes import bulk_lane
from shared.platform.telemetry import correlation_id_from
from shared.rpc.observation import observe
from shared.search.embedding.service import embed

if TYPE_CHECKING:
    from shared.search.embedding.function import EmbeddingRequest, EmbeddingResponse


@lambda_function(
    EMBEDDING_MODEL, timeout=120, condition="WithEmbeddingFunction", concurrency="BulkEmbeddingConcurrency"
)
def handler(event: EmbeddingRequest, _context: Any) -> EmbeddingResponse:
    """Embed the texts of one request."""
    with bulk_lane(), observe("workers/embed_bulk_texts", correlation_id_from(event["correlation_id"])):
        return embed(event)
