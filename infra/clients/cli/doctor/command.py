"""The `kho doctor` command."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from infra.clients.cli.doctor import machine
from infra.clients.cli.target import DEFAULT_TARGET, AsJson, DataTarget
from shared.services.diagnostics import CheckReport

if TYPE_CHECKING:
    from shared.services.diagnostics import CheckResult

_MARKS: Final = {"good": ("✓", "green"), "note": ("·", "yellow"), "wrong": ("✗", "red")}


def doctor(*, target: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Check this machine's set-up, or with --stack a deployment, and give advice.

    The exit code is 1 if a check fails.
    """
    console = Console(highlight=False)
    report = CheckReport(lambda result: None if as_json else _show(console, result))
    if target.stack:
        from infra.clients.cli.doctor import deployment  # imports boto3, which takes as long as all else

        deployment.check(target, report)
    else:
        machine.check(target, report)
    if as_json:
        results = [each.to_json() for each in report.results]
        print(json.dumps({"healthy": report.healthy, "findings": results}, indent=1))
    sys.exit(0 if report.healthy else 1)


def _show(console: Console, result: CheckResult) -> None:
    mark, colour = _MARKS[result.state]
    line = Text(f"{mark} ", colour) + Text(f"{result.subject}: ", "bold") + Text(result.message)
    console.print(line, soft_wrap=True)
    if result.advice:
        console.print(Text(f"    {result.advice}", "dim"), soft_wrap=True)
