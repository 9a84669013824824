"""The table of tasks in docs/mcp.md: the tools of each task are in one toolset."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.rpc.mcp_catalog import TOOLSETS, mcp_catalog

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"
TASKS = re.findall(r"^\| ([^|]+) \| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_tasks_cover_every_toolset() -> None:
    assert len(TASKS) >= 20
    assert {toolset for _, toolset, _ in TASKS} == set(TOOLSETS)


@pytest.mark.parametrize(("task", "toolset", "tools"), TASKS)
def test_one_toolset_has_the_tools_of_a_task(task: str, toolset: str, tools: str) -> None:
    needed = set(re.findall(r"\w+", tools))
    assert needed <= {each.name for each in mcp_catalog().of(*TOOLSETS[toolset].methods).tools}, task
