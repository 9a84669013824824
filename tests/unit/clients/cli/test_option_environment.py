"""Options are environment variables; positional arguments and confirmations are not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cyclopts import App, CycloptsError

from infra.clients.agent.cli import app as research_agent
from infra.clients.cli.main import app as kho

if TYPE_CHECKING:
    from collections.abc import Callable

COMMANDS: list[tuple[App, tuple[str, ...], str]] = [
    (kho, ("tenant", "erase"), "TENANT_ID"),
    (kho, ("tenant", "export"), "TENANT_ID"),
    (kho, ("keys", "revoke"), "KEY_ID"),
    (kho, ("devices", "register"), "DEVICE_ID"),
    (research_agent, ("query",), "TEXT"),
    (research_agent, ("collections", "delete"), "NAME"),
    (research_agent, ("kb", "add-text"), "CONTENT"),
]


@pytest.fixture
def help_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def read(app: App, *command: str) -> str:
        app([*command, "--help"], exit_on_error=False, result_action="return_value")
        return " ".join(capsys.readouterr().out.split())

    return read


@pytest.mark.parametrize(("app", "command", "argument"), COMMANDS)
def test_positional_arguments_are_not_read_from_the_environment(
    app: App, command: tuple[str, ...], argument: str, monkeypatch: pytest.MonkeyPatch, help_of: Callable[..., str]
) -> None:
    monkeypatch.setenv(f"KHO_{argument}", "from-the-environment")
    with pytest.raises(CycloptsError, match=argument):
        app.parse_args(list(command), exit_on_error=False, print_error=False)
    assert f"KHO_{argument}" not in help_of(app, *command)


@pytest.mark.parametrize(("app", "command"), [(kho, ("tenant", "erase")), (research_agent, ("collections", "delete"))])
def test_confirmations_are_not_read_from_the_environment(
    app: App, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, help_of: Callable[..., str]
) -> None:
    monkeypatch.setenv("KHO_YES", "true")
    monkeypatch.setenv("KHO_DATA", "/elsewhere")
    _, bound, _ = app.parse_args([*command, "name"], exit_on_error=False, print_error=False)
    options: dict[str, Any] = bound.kwargs
    assert "yes" not in options
    assert options["target"].data == Path("/elsewhere")
    assert "KHO_YES" not in help_of(app, *command)
    assert "KHO_DATA" in help_of(app, *command)


def test_help_of_erase_says_that_the_server_must_be_stopped(help_of: Callable[..., str]) -> None:
    text = help_of(kho, "tenant", "erase")
    assert "Stop a 'kho serve' that runs on the data folder first" in text
    assert "may be running" not in text
