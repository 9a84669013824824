"""The reference pages describe every method completely."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from infra.deploy.generate import reference_sections
from infra.deploy.reference import ANSWERS, PAGES
from shared.rpc.catalogue import catalogue

if TYPE_CHECKING:
    from pathlib import Path

RESULTS = {each.function: each.result for each in catalogue().methods.values()}


def test_every_field_of_every_method_has_a_description() -> None:
    sections = reference_sections()
    lines = [line for page in sections.values() for line in page]
    assert [line for line in lines if line.startswith("| `") and line.endswith("|  |")] == []
    assert set(sections) <= set(PAGES.glob("*.md"))


@pytest.mark.parametrize("file", sorted(ANSWERS.glob("*.json")), ids=lambda file: file.stem)
def test_a_recorded_answer_has_the_fields_of_its_result_model(file: Path) -> None:
    answer = json.loads(file.read_text(encoding="utf-8"))
    assert set(answer) <= set(RESULTS[file.stem]["properties"])
