"""A mistyped --data is an error of every command that reads or changes what is there. It creates no folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.clients.agent.cli import app as research_agent
from infra.clients.cli.main import app as kho

if TYPE_CHECKING:
    from pathlib import Path

    from cyclopts import App

COMMANDS: list[tuple[App, str]] = [
    (kho, "keys list"),
    (kho, "migrate"),
    (kho, "keys revoke key"),
    (kho, "devices list"),
    (kho, "devices call lamp switch"),
    (kho, "devices revoke lamp"),
    (kho, "tenant export acme --to {export}"),
    (kho, "tenant erase acme --yes"),
    (kho, "reindex"),
    (kho, "qdrant prepare"),
    (kho, "doctor"),
    (research_agent, "query ferns"),
    (research_agent, "collections list"),
    (research_agent, "collections info notes"),
    (research_agent, "collections delete notes --yes"),
    (research_agent, "kb add-text ferns --source note --collection notes"),
    (research_agent, "projects list"),
    (research_agent, "projects info garden"),
    (research_agent, "projects link garden --collections notes"),
]


@pytest.mark.parametrize(("app", "command"), COMMANDS, ids=lambda each: each if isinstance(each, str) else "")
def test_mistyped_data_folder_is_reported_and_not_created(
    app: App, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mistyped"
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "INFO")  # otherwise a command silences its process
    words = [*command.format(export=tmp_path / "export").split(), "--data", str(folder)]
    with pytest.raises(SystemExit) as ended:
        app(words)
    assert ended.value.code
    printed = capsys.readouterr()
    output = " ".join(f"{printed.out} {printed.err} {ended.value.code}".split())
    assert "there is no data folder" in output.lower()
    assert "Correct --data (KHO_DATA)" in output
    assert list(tmp_path.iterdir()) == []
