"""Embedding models in Amazon Bedrock: Cohere's and Titan's."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from shared.knowledge.embedding import Embedding, Vector
from shared.rpc.errors import Unavailable
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.knowledge.embedding.spaces import Space

_AT_ONCE: Final = 8
_COHERE_BATCH: Final = 96
_COHERE_CHARACTERS: Final = 2048
_TITAN_CHARACTERS: Final = 30_000


class _Bedrock(ABC):
    """What both families share: a model is asked with JSON, over HTTPS."""

    def __init__(self, space: Space) -> None:
        self.space = space
        settings = Config(connect_timeout=2, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 3})
        self._client = boto3.client("bedrock-runtime", config=settings)

    @abstractmethod
    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """The vectors of passages, or `Unavailable`."""

    @abstractmethod
    def question(self, text: str) -> Embedding:
        """The vector of a question, or `Unavailable`."""

    def asking(self, text: str) -> Callable[[], Embedding]:
        """What gives the vector of a question, for whoever has something else to do meanwhile."""
        return partial(self.question, text)

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._client.invoke_model(modelId=self.space.model, body=json.dumps(body))
            read: dict[str, Any] = json.loads(answer["body"].read())
        except (BotoCoreError, ClientError) as error:
            logger.warning("embedding", extra={"failure": type(error).__name__})
            raise Unavailable("The embedding model is not answering.") from None
        return read


class Cohere(_Bedrock):
    """Cohere Embed, multilingual: told by a type what a text is, where others have a prefix."""

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """The vectors of passages, or `Unavailable`."""
        starts = range(0, len(texts), _COHERE_BATCH)
        found = [self._embed(texts[start : start + _COHERE_BATCH], self.space.passage_prefix) for start in starts]
        return [Embedding(vector) for batch in found for vector in batch]

    def question(self, text: str) -> Embedding:
        """The vector of a question, or `Unavailable`."""
        return Embedding(self._embed([text], self.space.question_prefix)[0])

    def _embed(self, texts: Sequence[str], kind: str) -> list[Vector]:
        # An empty text is refused.
        asked = [text[:_COHERE_CHARACTERS] or " " for text in texts]
        vectors: list[Vector] = self._ask({"texts": asked, "input_type": kind, "truncate": "END"})["embeddings"]
        return vectors


class Titan(_Bedrock):
    """Titan Text Embeddings 2: one text a call, no word on what it is."""

    def passages(self, texts: Sequence[str]) -> list[Embedding]:
        """The vectors of passages, or `Unavailable`."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return list(threads.map(self.question, texts))

    def question(self, text: str) -> Embedding:
        """The vector of a question, or `Unavailable`."""
        body = {"inputText": text[:_TITAN_CHARACTERS] or " ", "dimensions": self.space.dimensions, "normalize": True}
        vector: Vector = self._ask(body)["embedding"]
        return Embedding(vector)
