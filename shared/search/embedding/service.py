"""The answer of the embedding functions: the model in this process, and its vectors encoded."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from shared.search.embedding.e5 import embed_passages, embed_question
from shared.search.embedding.function import EmbeddingRequest, EmbeddingResponse, EncodedEmbedding

if TYPE_CHECKING:
    from shared.search.embedding.e5 import TextVectors


def embed(request: EmbeddingRequest) -> EmbeddingResponse:
    """Embed the texts of one request in the current lane."""
    texts = request["texts"]
    vectors = embed_passages(texts) if request["kind"] == "passages" else [embed_question(text) for text in texts]
    return EmbeddingResponse(embeddings=[_encode(each) for each in vectors])


def _encode(vectors: TextVectors) -> EncodedEmbedding:
    return EncodedEmbedding(
        vector=b64encode(vectors.text.astype("<f4").tobytes()).decode(),
        tokens=b64encode(vectors.tokens.astype("<f2").tobytes()).decode(),
    )
