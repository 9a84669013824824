"""A model in Amazon Bedrock, by its Converse API."""

from __future__ import annotations

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from shared.rpc.errors import Unavailable
from shared.telemetry import logger


class Bedrock:
    """One model of Bedrock, which is given `seconds` for an answer."""

    def __init__(self, model: str, seconds: float) -> None:
        self._model = model
        settings = Config(connect_timeout=3, read_timeout=seconds, retries={"total_max_attempts": 1})
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
        except (BotoCoreError, ClientError, ResponseParserError, UnicodeDecodeError) as error:
            logger.warning("model", extra={"failure": type(error).__name__})
            raise Unavailable("The language model is not answering.") from None
        content = answer.get("output", {}).get("message", {}).get("content", [])
        return "".join(part.get("text", "") for part in content)
