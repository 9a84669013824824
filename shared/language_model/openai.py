"""A model behind any server that speaks OpenAI's chat completions, such as Ollama."""

from __future__ import annotations

import json
from typing import Final

import urllib3

from shared.config import ConfigurationError
from shared.rpc.errors import Unavailable
from shared.telemetry import logger

_SECONDS: Final = 20


class OpenAICompatible:
    """One model of one server."""

    def __init__(self, url: str, model: str, key: str) -> None:
        if not url:
            raise ConfigurationError("KHO_MODEL_URL must be the server's address, such as http://127.0.0.1:11434/v1")
        self._url = f"{url.rstrip('/')}/chat/completions"
        self._model = model
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._http = urllib3.PoolManager(timeout=urllib3.Timeout(total=_SECONDS), retries=False)

    def complete(self, system: str, prompt: str, *, max_tokens: int) -> str:
        """The model's words, or `Unavailable`."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        body = {"model": self._model, "messages": messages, "max_tokens": max_tokens}
        try:
            response = self._http.request("POST", self._url, json=body, headers=self._headers)
            words = _words(response) if response.status == 200 else None
        except urllib3.exceptions.HTTPError as error:
            logger.warning("model", extra={"failure": type(error).__name__})
            raise Unavailable("The language model is not answering.") from None
        if words is None:
            logger.warning("model", extra={"failure": f"status {response.status}"})
            raise Unavailable("The language model answered with an error.")
        return words.strip()


def _words(response: urllib3.BaseHTTPResponse) -> str | None:
    try:
        content = json.loads(response.data)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return content if isinstance(content, str) else None
