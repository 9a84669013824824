"""Embedding by two functions, which alone have the model in their layer: one for each lane.

Bulk work has a function of its own, so that reserved concurrency bounds it, however many instances index at once. On
one machine both run in the same process.
"""

from __future__ import annotations

import struct
from base64 import b64decode
from contextlib import nullcontext
from functools import cache, partial
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final, Literal, NotRequired, TypedDict

from shared.platform.config import config
from shared.platform.lanes import current_lane
from shared.platform.telemetry import current_correlation_id
from shared.rpc.errors import Unavailable
from shared.rpc.invocation import FunctionCrashed, call_internal
from shared.search.embedding import Comparison, Embedding
from shared.search.embedding.models import E5_SMALL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.search.embedding import Vector

URGENT_FUNCTION: Final = "workers-embed_texts"
BULK_FUNCTION: Final = "workers-embed_bulk_texts"
MAX_TEXTS: Final = 32
"""The texts of one call: with the token vectors of 510 tokens each, the response takes 5.7 MB of Lambda's 6."""
_MAX_CHARACTERS: Final = 16_384
"""Many more than the model reads. The longest request takes half of Lambda's limit."""
_THROTTLED_SECONDS: Final = 60.0
"""The time for which bulk work waits for an instance. Then the stream delivers its record again."""


_HARMLESS_TEXT: Final = "kho"

RequestKind = Literal["passages", "question", "comparison"]


class EmbeddingRequest(TypedDict):
    """The event of the function."""

    kind: RequestKind
    texts: list[str]
    correlation_id: str
    before: NotRequired[list[str]]
    """For passages in context: the text before each."""
    question: NotRequired[str]
    """For a comparison: the question with which the passages in context are compared."""


class EncodedEmbedding(TypedDict):
    """The vectors of a text in base64: floats of 32 bits, and for tokens of 16 bits, little-endian."""

    vector: str
    tokens: str


class EmbeddingResponse(TypedDict):
    """The response of the function, an embedding for each text, or its comparison with the question."""

    embeddings: NotRequired[list[EncodedEmbedding]]
    comparisons: NotRequired[list[tuple[float, float]]]
    """The cosine of the whole texts, and that of the tokens."""


class FunctionEmbedder:
    """Embeds texts by calls of the function."""

    space = E5_SMALL

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed passages, or raise `Unavailable`, with the function's crash as its cause if only these crash it.

        In all threads together, `KHO_EMBEDDING_CALLS` calls of bulk work run at once.
        """
        return self._passages(texts, None)

    def passages_in_context(self, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Embedding]:
        """Embed passages, each after the texts `before` it, as `passages` does."""
        return self._passages(texts, _joined(before))

    def _passages(self, texts: Sequence[str], before: Sequence[str] | None) -> list[Embedding]:
        embeddings: list[Embedding] = []
        for start in range(0, len(texts), MAX_TEXTS):
            batch = slice(start, start + MAX_TEXTS)
            request = _request("passages", texts[batch])
            if before:
                request["before"] = list(before[batch])
            with _bulk_calls() if current_lane() == "bulk" else nullcontext():
                embeddings += _embeddings(request)
        return embeddings

    def compare(self, question: str, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Comparison]:
        """Compare a question with passages in context, or raise `Unavailable`."""
        request = _request("comparison", texts)
        request["before"], request["question"] = _joined(before), question[:_MAX_CHARACTERS]
        return [Comparison(whole, tokens) for whole, tokens in _call(request)["comparisons"]]

    def question(self, text: str) -> Embedding:
        """Embed a question, or raise `Unavailable`."""
        return _embeddings(_request("question", [text]))[0]

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        """Return a function that embeds a question."""
        return partial(self.question, text)


@cache
def _bulk_calls() -> BoundedSemaphore:
    return BoundedSemaphore(config().embedding_calls)


def _joined(before: Sequence[Sequence[str]]) -> list[str]:
    return ["\n".join(each)[-_MAX_CHARACTERS:] for each in before]


def _request(kind: RequestKind, texts: Sequence[str]) -> EmbeddingRequest:
    cut = [text[:_MAX_CHARACTERS] for text in texts]
    return EmbeddingRequest(kind=kind, texts=cut, correlation_id=current_correlation_id())


def _embeddings(request: EmbeddingRequest) -> list[Embedding]:
    return [_decode(each) for each in _call(request)["embeddings"]]


def _call(request: EmbeddingRequest) -> EmbeddingResponse:
    try:
        return _invoke(request)
    except Unavailable as error:
        crashed = isinstance(error.__cause__, FunctionCrashed)
        if crashed and request["kind"] == "passages" and _embeds_others(request):
            raise
        raise Unavailable from None


def _invoke(request: EmbeddingRequest) -> EmbeddingResponse:
    """Invoke the function of the current lane."""
    response: EmbeddingResponse
    if current_lane() == "bulk":
        response = call_internal(BULK_FUNCTION, request, throttled_seconds=_THROTTLED_SECONDS)
    else:
        # Provisioned instances belong to the alias.
        function = f"{URGENT_FUNCTION}:live" if config().embedding_instances else URGENT_FUNCTION
        response = call_internal(function, request)
    return response


def _embeds_others(request: EmbeddingRequest) -> bool:
    """Return False if the function crashes on any text, so that the texts of the request are not to blame."""
    try:
        _invoke(EmbeddingRequest(kind="passages", texts=[_HARMLESS_TEXT], correlation_id=request["correlation_id"]))
    except Unavailable:
        return False
    return True


def _decode(encoded: EncodedEmbedding) -> Embedding:
    (vector,) = _vectors(encoded["vector"], "f")
    return Embedding(vector, _vectors(encoded["tokens"], "e"))


def _vectors(encoded: str, kind: Literal["f", "e"]) -> list[Vector]:
    raw = b64decode(encoded)
    numbers = struct.unpack(f"<{len(raw) // struct.calcsize(kind)}{kind}", raw)
    width = E5_SMALL.dimensions
    return [list(numbers[start : start + width]) for start in range(0, len(numbers), width)]
