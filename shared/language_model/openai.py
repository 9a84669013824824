"""A model behind any server that speaks OpenAI's chat completions, such as Ollama."""

from __future__ import annotations

import json
import math
import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from shared.config import ConfigurationError
from shared.language_model import Completion
from shared.rpc.errors import Unavailable
from shared.rpc.strict_json import compact
from shared.telemetry import logger

_CONNECT_SECONDS: Final = 3.0
_MAX_ANSWER_BYTES: Final = 1024 * 1024


class OpenAICompatible:
    """One model of one server, which is given at most `seconds` for an answer."""

    def __init__(self, url: str, model: str, key: str, seconds: float) -> None:
        self._address = urlsplit(f"{url.rstrip('/')}/chat/completions")
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise ConfigurationError("KHO_MODEL_URL must be the server's address, such as http://127.0.0.1:11434/v1")
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError("KHO_MODEL_KEY holds characters that no key has")
        self._model = model
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._seconds = seconds

    def complete(self, system: str, prompt: str, *, max_tokens: int, seconds: float = math.inf) -> Completion:
        """The model's words within `seconds`, or `Unavailable`."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        body = {"model": self._model, "messages": messages, "max_tokens": max_tokens}
        try:
            status, answer = self._post(compact(body).encode("utf-8"), min(seconds, self._seconds))
        except (OSError, HTTPException) as error:
            logger.warning("model", extra={"failure": type(error).__name__})
            raise Unavailable("The language model is not answering.") from None
        completion = _completion(answer) if status == 200 else None
        if completion is None:
            logger.warning("model", extra={"failure": f"status {status}"})
            raise Unavailable("The language model answered with an error.")
        return completion

    def _post(self, body: bytes, seconds: float) -> tuple[int, bytes]:
        kind = HTTPSConnection if self._address.scheme == "https" else HTTPConnection
        connecting = min(_CONNECT_SECONDS, seconds)
        connection = kind(self._address.hostname or "", self._address.port, timeout=connecting)
        connection.connect()
        connection.sock.settimeout(seconds)
        # Servers send blank lines while they think, so no time-out of a single read ends this.
        ending = threading.Timer(seconds, _end, [connection.sock])
        ending.start()
        try:
            path = f"{self._address.path}?{self._address.query}" if self._address.query else self._address.path
            connection.request("POST", path, body, self._headers)
            response = connection.getresponse()
            return response.status, response.read(_MAX_ANSWER_BYTES)
        finally:
            ending.cancel()
            connection.close()


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _completion(answer: bytes) -> Completion | None:
    try:
        read = json.loads(answer)
        choice = read["choices"][0]
        content = choice["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    if not isinstance(content, str):
        return None
    usage = read.get("usage")
    return Completion(
        content,
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        choice.get("finish_reason") != "length",
    )


def _count(usage: Any, name: str) -> int:
    counted = usage.get(name) if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) and counted >= 0 else 0
