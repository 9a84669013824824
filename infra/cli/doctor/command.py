"""The command `kho doctor`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from infra.cli.doctor import deployment, machine
from infra.cli.doctor.findings import CheckReport
from infra.cli.target import DEFAULT_TARGET, DataTarget

if TYPE_CHECKING:
    from infra.cli.doctor.findings import CheckResult

_MARKS: Final = {"good": ("✓", "green"), "note": ("·", "yellow"), "wrong": ("✗", "red")}


def doctor(
    *, where: DataTarget = DEFAULT_TARGET, as_json: Annotated[bool, Parameter(name="--json", negative=())] = False
) -> None:
    """Look at this machine's set-up, or with --stack at a deployment, and say what to do.

    Ends with 1 where something is wrong.

    Parameters
    ----------
    as_json
        Print JSON.
    """
    console = Console(highlight=False)
    findings = CheckReport(lambda finding: None if as_json else _show(console, finding))
    look = deployment.look if where.stack else machine.look
    look(where, findings)
    if as_json:
        print(json.dumps({"healthy": findings.healthy, "findings": [asdict(each) for each in findings.all]}, indent=1))
    sys.exit(0 if findings.healthy else 1)


def _show(console: Console, finding: CheckResult) -> None:
    mark, colour = _MARKS[finding.state]
    console.print(Text(f"{mark} ", colour) + Text(f"{finding.subject}: ", "bold") + Text(finding.said), soft_wrap=True)
    if finding.advice:
        console.print(Text(f"    {finding.advice}", "dim"), soft_wrap=True)
