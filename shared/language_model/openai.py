"""A model on any server with OpenAI's chat completions API, such as Ollama."""

import base64
import json
import math
from typing import Any, Final
from urllib.parse import urlsplit

from shared.aws.secrets_manager import forget_secrets
from shared.language_model import Completion, Picture, language_model
from shared.platform.config import ConfigurationError
from shared.platform.http import ConnectionFailed, send_once
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable
from shared.rpc.strict_json import compact

_UNAUTHORIZED: Final = (401, 403)
_MAX_BYTES: Final = 1024 * 1024


class OpenAICompatible:
    """A model of one server with a time limit of `seconds`."""

    def __init__(self, url: str, model: str, key: str, seconds: float) -> None:
        self._url = f"{url.rstrip('/')}/chat/completions"
        address = urlsplit(self._url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ConfigurationError("KHO_MODEL_URL must be the server's address, such as http://127.0.0.1:11434/v1")
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise ConfigurationError("KHO_MODEL_KEY contains characters that no key has")
        self._model = model
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._seconds = seconds

    def complete(
        self, system: str, prompt: str, *, max_tokens: int, seconds: float = math.inf, picture: Picture | None = None
    ) -> Completion:
        """Return the completion within `seconds`, or raise `Unavailable`."""
        content = [_image_part(picture), {"type": "text", "text": prompt}] if picture else prompt
        messages = [{"role": "system", "content": system}, {"role": "user", "content": content}]
        body = {"model": self._model, "messages": messages, "max_tokens": max_tokens}
        seconds = min(seconds, self._seconds)
        try:
            # Servers send blank lines while the model runs, so no time-out of a single read ends the call.
            status, _, response = send_once(
                "POST", self._url, self._headers, compact(body).encode(), seconds, _MAX_BYTES
            )
        except ConnectionFailed as error:
            logger.warning("model", extra={"failure": str(error)})
            raise Unavailable("The language model is not answering.") from None
        if status in _UNAUTHORIZED:
            forget_secrets()
            language_model.cache_clear()  # the next call reads the key again
        completion = _completion(response) if status == 200 else None
        if completion is None:
            logger.warning("model", extra={"failure": f"status {status}"})
            refused = status in _UNAUTHORIZED
            raise Unavailable(f"The language model {'refuses the key' if refused else 'answered with an error'}.")
        return completion


def _image_part(picture: Picture) -> dict[str, Any]:
    content = base64.b64encode(picture.content).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:image/{picture.format};base64,{content}"}}


def _completion(body: bytes) -> Completion | None:
    try:
        completion = json.loads(body)
        choice = completion["choices"][0]
        content = choice["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    if not isinstance(content, str):
        return None
    usage = completion.get("usage")
    return Completion(
        content,
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        choice.get("finish_reason") != "length",
    )


def _count(usage: Any, name: str) -> int:
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and count >= 0 else 0
