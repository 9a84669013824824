"""The table of promises names tests that exist."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PROMISES = {
    promise: tests
    for section in tomllib.loads((TESTS / "promises.toml").read_text(encoding="utf-8")).values()
    for promise, tests in section.items()
}


@cache
def function_names(file: str) -> set[str]:
    module = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name for node in module.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_has_a_test(promise: str) -> None:
    """A test that is renamed or deleted is corrected or replaced in the table."""
    assert PROMISES[promise]
    for named in PROMISES[promise]:
        file, _, name = named.partition("::")
        assert name in function_names(file), named
