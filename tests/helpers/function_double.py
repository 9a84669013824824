"""A function that stands for all functions of a gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.functions import Functions
from infra.local.template import load

if TYPE_CHECKING:
    from collections.abc import Callable


class FunctionDouble(Functions):
    """Functions that all return what `answer` does."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        super().__init__(load().functions)
        self._answer = answer

    def run(self, _name: str, _event: Any) -> Any:
        """Return the answer."""
        return self._answer()
