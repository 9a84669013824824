"""Reranking with Amazon Bedrock. For late interaction, the vector store compares token vectors."""

from collections.abc import Sequence
from typing import Any, Protocol

from shared.platform.config import ConfigurationError, config
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable


class Reranker(Protocol):
    """Scores passages by reading them together with the question."""

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance of each text in 0-1, or raise `Unavailable`."""


class BedrockReranker:
    """A reranking model in Amazon Bedrock."""

    def __init__(self, model: str) -> None:
        import boto3
        from botocore.config import Config

        settings = Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 1})
        self._client: Any = boto3.client("bedrock-agent-runtime", config=settings)
        meta = self._client.meta
        arn = f"arn:{meta.partition}:bedrock:{meta.region_name}::foundation-model/{model}"
        self._model = model if model.startswith("arn:") else arn

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance of each text in 0-1, or raise `Unavailable`."""
        from botocore.exceptions import BotoCoreError, ClientError

        documents = [{"type": "TEXT", "textDocument": {"text": text or " "}} for text in texts]
        try:
            answer = self._client.rerank(
                queries=[{"type": "TEXT", "textQuery": {"text": question}}],
                sources=[{"type": "INLINE", "inlineDocumentSource": document} for document in documents],
                rerankingConfiguration={
                    "type": "BEDROCK_RERANKING_MODEL",
                    "bedrockRerankingConfiguration": {
                        "numberOfResults": len(texts),
                        "modelConfiguration": {"modelArn": self._model},
                    },
                },
            )
        except (BotoCoreError, ClientError) as error:
            logger.warning("reranking", extra={"failure": type(error).__name__})
            raise Unavailable("The reranking model is not answering.") from None
        scores = dict.fromkeys(range(len(texts)), 0.0)
        scores |= {result["index"]: result["relevanceScore"] for result in answer["results"]}
        return list(scores.values())


def reranker() -> Reranker | None:
    """Return the configured reranking model, if any."""
    settings = config()
    if settings.reranker != "bedrock":
        return None
    if not settings.rerank_model:
        raise ConfigurationError("KHO_RERANK_MODEL must name the model where KHO_RERANKER is bedrock")
    return BedrockReranker(settings.rerank_model)
