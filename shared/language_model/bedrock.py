"""A model in Amazon Bedrock, through its Converse API."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from shared.language_model import Completion, Picture
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from types_boto3_bedrock_runtime import BedrockRuntimeClient

_CONNECT_SECONDS: Final = 3.0


class BedrockModel:
    """A model of Bedrock with a time limit of `seconds`."""

    def __init__(self, model: str, seconds: float) -> None:
        self._model = model
        self._seconds = seconds
        self._clients: dict[float, BedrockRuntimeClient] = {}
        self._clients_lock = threading.Lock()
        self._client(seconds)

    def complete(
        self, system: str, prompt: str, *, max_tokens: int, seconds: float = math.inf, picture: Picture | None = None
    ) -> Completion:
        """Return the completion within `seconds`, or raise `Unavailable`."""
        image = {"image": {"format": picture.format, "source": {"bytes": picture.content}}} if picture else None
        content: list[Any] = [*filter(None, [image]), {"text": prompt}]
        try:
            response: Any = self._client(min(seconds, self._seconds)).converse(
                modelId=self._model,
                system=[{"text": system}],
                messages=[{"role": "user", "content": content}],
                inferenceConfig={"maxTokens": max_tokens},
            )
        except (BotoCoreError, ClientError, ResponseParserError, UnicodeDecodeError) as error:
            logger.warning("model", extra={"failure": type(error).__name__})
            raise Unavailable("The language model is not answering.") from None
        parts = response.get("output", {}).get("message", {}).get("content", [])
        usage = response.get("usage", {})
        return Completion(
            "".join(part.get("text", "") for part in parts),
            usage.get("inputTokens", 0),
            usage.get("outputTokens", 0),
            response.get("stopReason") != "max_tokens",
        )

    def _client(self, seconds: float) -> BedrockRuntimeClient:
        """Return a client with this time-out in whole seconds. Time-outs are a setting of the client."""
        timeout = min(float(math.ceil(seconds)), self._seconds)
        with self._clients_lock:
            if timeout not in self._clients:
                settings = Config(
                    connect_timeout=min(_CONNECT_SECONDS, timeout),
                    read_timeout=timeout,
                    retries={"total_max_attempts": 1},
                )
                self._clients[timeout] = boto3.client("bedrock-runtime", config=settings)
            return self._clients[timeout]
