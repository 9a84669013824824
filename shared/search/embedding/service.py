"""The answer of the embedding functions: the model in this process, and its vectors encoded."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from shared.search.embedding.e5 import compare, embed_passages, embed_passages_in_context, embed_question
from shared.search.embedding.function import EmbeddingRequest, EmbeddingResponse, EncodedEmbedding

if TYPE_CHECKING:
    from shared.search.embedding.e5 import TextVectors


def embed(request: EmbeddingRequest) -> EmbeddingResponse:
    """Embed the texts of one request in the current lane, or compare them with its question."""
    texts = request["texts"]
    match request["kind"]:
        case "comparison":
            compared = compare(request["question"], texts, request["before"])
            return EmbeddingResponse(comparisons=[(each.whole, each.tokens or 0.0) for each in compared])
        case "question":
            vectors = [embed_question(text) for text in texts]
        case "passages" if "before" in request:
            vectors = embed_passages_in_context(texts, request["before"])
        case _:
            vectors = embed_passages(texts)
    return EmbeddingResponse(embeddings=[_encode(each) for each in vectors])


def _encode(vectors: TextVectors) -> EncodedEmbedding:
    return EncodedEmbedding(
        vector=b64encode(vectors.text.astype("<f4").tobytes()).decode(),
        tokens=b64encode(vectors.tokens.astype("<f2").tobytes()).decode(),
    )
