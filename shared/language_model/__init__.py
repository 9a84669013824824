"""Language models behind one interface: Amazon Bedrock, or any server with OpenAI's API."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, Protocol

from shared.aws.secrets_manager import get_secret
from shared.platform.config import ConfigurationError, config
from shared.rpc.observation import REQUEST_SECONDS

SECONDS: Final = REQUEST_SECONDS - 1
"""A model's time limit. It leaves time to store the completion."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that goes with a prompt."""

    format: Literal["jpeg", "png"]
    content: bytes


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's completion and its token counts. `is_whole` is False if the token limit cut it off."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_whole: bool = True


class LanguageModel(Protocol):
    """A model that completes a prompt."""

    def complete(
        self, system: str, prompt: str, *, max_tokens: int, seconds: float = math.inf, picture: Picture | None = None
    ) -> Completion:
        """Return the completion within `seconds`, at most the model's own limit, or raise `Unavailable`."""


@cache
def language_model(seconds: float | None = None) -> LanguageModel | None:
    """Return the configured model, if any, with a limit of `seconds`, by default SECONDS."""
    seconds = SECONDS if seconds is None else seconds
    settings = config()
    if settings.model_provider == "none":
        return None
    if not settings.model:
        raise ConfigurationError("KHO_MODEL must name the model of KHO_MODEL_PROVIDER")
    if settings.model_provider == "bedrock":
        from shared.language_model.bedrock import BedrockModel

        return BedrockModel(settings.model, seconds)
    from shared.language_model.openai import OpenAICompatible

    return OpenAICompatible(settings.model_url, settings.model, get_secret("KHO_MODEL_KEY"), seconds)
