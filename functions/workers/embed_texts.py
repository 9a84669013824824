"""Embed texts for the functions that index or search."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from api.deployment import EMBEDDING_MODEL, lambda_function
from shared.knowledge.embedding.e5 import embed_passages, embed_question
from shared.knowledge.embedding.function import EmbeddingRequest, EmbeddingResponse, EncodedEmbedding
from shared.telemetry import correlation_id_from, observe

if TYPE_CHECKING:
    from shared.knowledge.embedding.e5 import TextVectors


@lambda_function(EMBEDDING_MODEL, timeout=60, condition="WithEmbeddingFunction", provisioned="EmbeddingInstances")
def handler(event: EmbeddingRequest, _context: Any) -> EmbeddingResponse:
    """Embed the texts of one request."""
    with observe("workers/embed_texts", correlation_id_from(event["correlation_id"])):
        texts = event["texts"]
        vectors = embed_passages(texts) if event["kind"] == "passages" else [embed_question(text) for text in texts]
        return EmbeddingResponse(embeddings=[_encode(each) for each in vectors])


def _encode(vectors: TextVectors) -> EncodedEmbedding:
    return EncodedEmbedding(
        vector=b64encode(vectors.text.astype("<f4").tobytes()).decode(),
        tokens=b64encode(vectors.tokens.astype("<f2").tobytes()).decode(),
    )
