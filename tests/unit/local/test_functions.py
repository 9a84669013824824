"""Functions of one machine that call functions: in one thread, unless a shorter timeout has to end the call."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.functions import Functions
from infra.local.template import FunctionDefinition
from shared.platform.config import function_variables
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def made() -> Iterator[ModuleType]:
    """Yield a module for the handlers of a test."""
    module = ModuleType("made_by_a_test")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def functions(made: ModuleType, **handlers: tuple[float, Callable[[Any, Any], Any]]) -> Functions:
    """Return functions with these timeouts and handlers, each of which has a variable of its own name."""
    definitions = {}
    for name, (timeout, handler) in handlers.items():
        setattr(made, name, handler)
        definitions[name] = FunctionDefinition(name, f"{made.__name__}.{name}", timeout, frozenset({name}))
    return Functions(definitions)


@pytest.mark.parametrize(("timeout", "shares"), [(26.0, True), (28.0, True), (900.0, True), (20.0, False)])
def test_a_function_runs_in_its_callers_thread_if_its_timeout_is_hardly_shorter(
    made: ModuleType, timeout: float, *, shares: bool
) -> None:
    seen: list[tuple[int, Any]] = []

    def method(event: Any, _context: Any) -> Any:
        seen.append((threading.get_ident(), function_variables.get()))
        return event

    def endpoint(event: Any, _context: Any) -> Any:
        answer = running("method", b'{"number": 7}')
        seen.append((threading.get_ident(), function_variables.get()))
        return answer.decode()

    running = functions(made, method=(timeout, method), endpoint=(28.0, endpoint))
    assert running("endpoint", b"{}") == b'"{\\"number\\": 7}"'
    (inner, variables), (outer, own) = seen
    assert (inner == outer, variables, own) == (shares, {"method"}, {"endpoint"})
    assert outer != threading.get_ident()
    running.close()


def test_a_shorter_timeout_ends_the_call_of_a_function(made: ModuleType) -> None:
    is_over = threading.Event()

    def method(_event: Any, _context: Any) -> Any:
        is_over.wait(CEILING_SECONDS)

    def endpoint(_event: Any, _context: Any) -> Any:
        with pytest.raises(TimeoutError):
            running("method", b"{}")
        return "in time"

    running = functions(made, method=(0.01, method), endpoint=(CEILING_SECONDS, endpoint))
    assert running("endpoint", b"{}") == b'"in time"'
    is_over.set()
    running.close()
