"""The start, the calls and the memory of the embedding function."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.search.embedding.function import MAX_TEXTS, URGENT_FUNCTION, EmbeddingRequest
from tests.suites.rie.emulator import Instance, crashed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.suites.rie.functions import DeployedFunction
    from tests.suites.rie.installation import Installed

PASSAGES: Final = 64
TOKENS: Final = 169
"""The tokens of `PASSAGE`."""
PASSAGE: Final = "Ferns are watered in the morning, because the sun would burn their wet leaves at noon. " * 8
QUESTION: Final = "When are ferns watered?"


@dataclass(frozen=True, slots=True)
class EmbeddingTimes:
    """The measurements of a new instance, in milliseconds."""

    init: float
    processor: float
    """The CPU time of the start and the first query."""
    query: float
    """A warm query."""
    passages: float
    """`PASSAGES` passages, in calls one after the other."""
    peak_mb: float


def measure_embedding(
    fetched: Installed, functions: Sequence[DeployedFunction], environment: Mapping[str, str]
) -> EmbeddingTimes:
    """Start an instance of the embedding function. Measure its start, a warm query, passages, and its memory."""
    function = next(each for each in functions if each.name == URGENT_FUNCTION)
    question = EmbeddingRequest(kind="question", texts=[QUESTION], correlation_id="measuring")
    passages = EmbeddingRequest(kind="passages", texts=[PASSAGE] * MAX_TEXTS, correlation_id="measuring")
    instance = Instance(fetched, function, environment)
    try:
        _invoke(instance, question)
        processor_ms = instance.processor_ms()
        for request in (question, *[passages] * (PASSAGES // MAX_TEXTS)):
            _invoke(instance, request)
        _, query_ms, *passages_ms = instance.calls_ms()
        return EmbeddingTimes(instance.init_ms(), processor_ms, query_ms, sum(passages_ms), instance.peak_mb())
    finally:
        instance.close()


def _invoke(instance: Instance, request: EmbeddingRequest) -> None:
    answer = instance.invoke(json.dumps(request).encode())
    assert not crashed(answer), answer
