"""`kho memory search`, on a running server and on a data folder without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.helpers.api_client import run_kho
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("memory") / "data"
    with KhoServer(folder) as server:
        for name, text in (("Ann", "Where is the violin?"), ("Ben", "The violin is in the attic.")):
            server.call("memory-server/memory/add_message", conversation_id="c", role="user", content=text, name=name)
    return folder


def test_messages_are_found_at_the_prompt(data: Path) -> None:
    with KhoServer(data):
        found = run_kho("memory", "search", "Who keeps the violin in the attic?", "--data", str(data))
        newest = run_kho("memory", "search", "--limit", "1", "--json", "--data", str(data))
        refused = run_kho("memory", "search", "--subject", "a b", "--data", str(data))
        nothing = run_kho("memory", "search", "--conversation", "none", "--data", str(data))
    assert found.returncode == 0, found.stderr
    assert [line.split()[2] for line in found.stdout.splitlines()] == ["speaker", "Ben", "Ann"]
    assert [each["number"] for each in json.loads(newest.stdout)["messages"]] == [2]
    assert (refused.returncode, "without spaces" in refused.stderr) == (1, True)
    assert nothing.stdout == "No message was found.\n"
