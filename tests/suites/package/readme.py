"""The commands of the README's first calls."""

from __future__ import annotations

from typing import Final

from infra.prepare import ROOT
from tests.helpers.documented_commands import CurlRequest, curl_request, shell_commands

_OWN: Final = ".venv/bin/"


def first_calls() -> list[CurlRequest | list[str]]:
    """Return each command of the section in order: what curl sends, and the words of our own programs.

    The program of another maker that it names is not run.
    """
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## First calls\n")[1].split("\n## ")[0]
    calls: list[CurlRequest | list[str]] = []
    for words in shell_commands(section):
        match words:
            case ["curl", *rest]:
                calls.append(curl_request(rest))
            case [program, *rest] if program.startswith(_OWN):
                calls.append([program.removeprefix(_OWN), *rest])
            case _:
                assert words[0] == "claude"
    return calls
