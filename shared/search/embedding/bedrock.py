"""Embedding models in Amazon Bedrock: Cohere Embed and Titan."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import mul
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable
from shared.search.embedding import Comparison, Embedding, Vector, after_previous

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.search.embedding.models import Space

_CONCURRENT_CALLS: Final = 8
_COHERE_BATCH: Final = 96
_COHERE_CHARACTERS: Final = 2048
_TITAN_CHARACTERS: Final = 30_000


class _Bedrock(ABC):
    """Common base of both model families: a JSON request over HTTPS."""

    def __init__(self, space: Space) -> None:
        self.space = space
        settings = Config(connect_timeout=2, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3})
        self._client = boto3.client("bedrock-runtime", config=settings)

    @abstractmethod
    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed passages, or raise `Unavailable`."""

    def passages_in_context(self, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Embedding]:
        """Embed passages, each behind the text before it, or raise `Unavailable`."""
        return self.passages(after_previous(texts, before))

    def compare(self, question: str, texts: Sequence[str], before: Sequence[Sequence[str]]) -> list[Comparison]:
        """Compare a question with passages, each behind the text before it, or raise `Unavailable`."""
        asked: Any = self.question(question).vector
        vectors: list[Any] = [each.vector for each in self.passages_in_context(texts, before)]
        return [Comparison(sum(map(mul, asked, each))) for each in vectors]

    @abstractmethod
    def question(self, text: str) -> Embedding:
        """Embed a question, or raise `Unavailable`."""

    def prepare_question(self, text: str) -> Callable[[], Embedding]:
        """Return a function that embeds a question."""
        return partial(self.question, text)

    def _invoke(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            response = self._client.invoke_model(modelId=self.space.model, body=json.dumps(body))
            answer: dict[str, Any] = json.loads(response["body"].read())
        except (BotoCoreError, ClientError) as error:
            logger.warning("embedding", extra={"failure": type(error).__name__})
            raise Unavailable("The embedding model is not answering.") from None
        return answer


class Cohere(_Bedrock):
    """Cohere Embed, multilingual. The input type replaces the prefixes of other models."""

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed passages, or raise `Unavailable`."""
        starts = range(0, len(texts), _COHERE_BATCH)
        batches = [self._embed(texts[start : start + _COHERE_BATCH], self.space.passage_prefix) for start in starts]
        return [Embedding(vector) for batch in batches for vector in batch]

    def question(self, text: str) -> Embedding:
        """Embed a question, or raise `Unavailable`."""
        return Embedding(self._embed([text], self.space.question_prefix)[0])

    def _embed(self, texts: Sequence[str], kind: str) -> list[Vector]:
        # Cohere rejects an empty text.
        not_empty = [text[:_COHERE_CHARACTERS] or " " for text in texts]
        vectors: list[Vector] = self._invoke({"texts": not_empty, "input_type": kind, "truncate": "END"})["embeddings"]
        return vectors


class Titan(_Bedrock):
    """Titan Text Embeddings 2: one text per call, no prefix and no input type."""

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """Embed passages, or raise `Unavailable`."""
        with ThreadPoolExecutor(_CONCURRENT_CALLS) as threads:
            return list(threads.map(self.question, texts))

    def question(self, text: str) -> Embedding:
        """Embed a question, or raise `Unavailable`."""
        body = {"inputText": text[:_TITAN_CHARACTERS] or " ", "dimensions": self.space.dimensions, "normalize": True}
        vector: Vector = self._invoke(body)["embedding"]
        return Embedding(vector)
