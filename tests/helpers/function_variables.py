"""Handlers called in the test's process, with the environment variables of their deployment alone."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from api.handler import Handler
from infra.local.template import load
from shared.platform.config import function_variables
from shared.rpc.catalogue import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def variables_of(function: str) -> Iterator[None]:
    """Refuse to read variables that the function does not declare."""
    reset = function_variables.set(load().functions[function].variables)
    try:
        yield
    finally:
        function_variables.reset(reset)


@contextmanager
def methods_with_their_variables() -> Iterator[None]:
    """Give each method that is called its own variables alone."""
    run = Handler.__call__

    def run_with_variables(handler: Handler[Any, Any], event: dict[str, Any], context: Any) -> Any:
        entry = catalogue().methods.get(handler.method.name)
        if entry is None or entry.function not in load().functions:  # a test's own, or one of one machine
            return run(handler, event, context)
        with variables_of(entry.function):
            return run(handler, event, context)

    with patch.object(Handler, "__call__", run_with_variables):
        yield
