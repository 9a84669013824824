"""The reference pages describe every method completely."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from infra.deploy.reference import ANSWERS, PAGES, method_sections
from shared.rpc.catalogue import FILE, catalogue
from shared.rpc.mcp_catalog import FILE as MCP_FILE

METHODS = catalogue().methods.values()


def test_every_field_of_every_method_has_a_description() -> None:
    sections = method_sections(json.loads(FILE.read_text()), json.loads(MCP_FILE.read_text()))
    lines = [line for page in sections.values() for line in page]
    assert [line for line in lines if line.startswith("| `") and line.endswith("|  |")] == []
    assert set(sections) <= set(PAGES.glob("*.md"))


@pytest.mark.parametrize("function", [each.function for each in METHODS])
def test_a_recorded_answer_has_the_fields_of_the_result_model(function: str) -> None:
    answer = json.loads((ANSWERS / f"{function}.json").read_text(encoding="utf-8"))
    result = import_module(function.replace("-", ".")).handler.method.result
    assert set(answer) <= set(result.json_schema(mode="serialization")["properties"])
