"""Embed texts that a caller waits for, for the functions that index or search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from api.deployment import EMBEDDING_MODEL, lambda_function
from shared.platform.telemetry import correlation_id_from
from shared.rpc.observation import observe
from shared.search.embedding.service import embed

if TYPE_CHECKING:
    from shared.search.embedding.function import EmbeddingRequest, EmbeddingResponse


@lambda_function(EMBEDDING_MODEL, timeout=60, condition="WithEmbeddingFunction", provisioned="EmbeddingInstances")
def handler(event: EmbeddingRequest, _context: Any) -> EmbeddingResponse:
    """Embed the texts of one request."""
    with observe("workers/embed_texts", correlation_id_from(event["correlation_id"])):
        return embed(event)
