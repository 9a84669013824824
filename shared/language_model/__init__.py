"""Language models behind one small interface: Bedrock, or any server that speaks OpenAI's protocol."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Final, Protocol

from shared.aws.secrets_manager import get_secret
from shared.config import ConfigurationError, config
from shared.telemetry import REQUEST_SECONDS

SECONDS: Final = REQUEST_SECONDS - 1
"""What a model is given: when it ends, its words can still be stored."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's words, and what they cost as it counts; `is_whole` unless it was stopped by the limit of its words."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_whole: bool = True


class LanguageModel(Protocol):
    """Completes a prompt."""

    def complete(self, system: str, prompt: str, *, max_tokens: int, seconds: float = math.inf) -> Completion:
        """Return the model's words within `seconds`, at most its own limit, or raise `Unavailable`."""


@cache
def language_model() -> LanguageModel | None:
    """The model that the settings name, if any."""
    settings = config()
    if settings.model_provider == "none":
        return None
    if not settings.model:
        raise ConfigurationError("KHO_MODEL must name the model of KHO_MODEL_PROVIDER")
    if settings.model_provider == "bedrock":
        from shared.language_model.bedrock import BedrockModel

        return BedrockModel(settings.model, SECONDS)
    from shared.language_model.openai import OpenAICompatible

    return OpenAICompatible(settings.model_url, settings.model, get_secret("KHO_MODEL_KEY"), SECONDS)
