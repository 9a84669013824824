"""A model in Amazon Bedrock, by its Converse API."""

from __future__ import annotations

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from shared.rpc.errors import Unavailable
from shared.telemetry import logger


class Bedrock:
    """One model of Bedrock."""

    def __init__(self, model: str) -> None:
        self._model = model
        settings = Config(connect_timeout=2, read_timeout=20, retries={"total_max_attempts": 1})
        self._client = boto3.client("bedrock-runtime", config=settings)

    def complete(self, system: str, prompt: str, *, max_tokens: int) -> str:
        """The model's words, or `Unavailable`."""
        try:
            answer = self._client.converse(
                modelId=self._model,
                system=[{"text": system}],
                messages=[{"role": "user", "content": [{"text": prompt}]}],
                inferenceConfig={"maxTokens": max_tokens},
            )
        except (BotoCoreError, ClientError) as error:
            logger.warning("model", extra={"failure": type(error).__name__})
            raise Unavailable("The language model is not answering.") from None
        return "".join(part.get("text", "") for part in answer["output"]["message"]["content"]).strip()
