"""The load generator wrk: installed, or fetched from Debian into `.venv`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.helpers.debian import unpack
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

_FETCHED: Final = Path(sys.prefix) / "share" / "wrk"
_SCRIPT: Final = Path(__file__).with_name("wrk.lua")


@dataclass(frozen=True, slots=True)
class LoadRun:
    """The calls of one run, in seconds."""

    calls: int
    seconds: float
    p50: float
    p99: float
    longest: float
    errors: int
    """Answers with a status from 400 on, MCP's errors, connections that broke, and calls without an answer."""
    processor_seconds: float = 0.0
    """The time of the generator itself."""


class Load:
    """A program that posts bodies, in turn, on a number of connections to one address."""

    def __init__(self, url: str, bodies: Path, headers: Mapping[str, str], connections: int, seconds: int) -> None:
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", f"--timeout={CEILING_SECONDS:.0f}s", "-s", str(_SCRIPT)]
        for name, value in headers.items():
            options += ["-H", f"{name}: {value}"]
        command = [_program(), *options, url, "--", str(bodies)]
        libraries = ":".join(str(each) for each in (_FETCHED / "usr" / "lib").glob("*-linux-gnu"))
        self._process = subprocess.Popen(
            command, env=os.environ | {"LD_LIBRARY_PATH": libraries}, stdout=subprocess.PIPE, text=True
        )

    def result(self) -> LoadRun:
        """Return the run when it has ended."""
        assert self._process.stdout
        with self._process.stdout as output:
            last = output.read().splitlines()[-1]
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        assert self._process.returncode == 0, last
        return LoadRun(**json.loads(last), processor_seconds=used.ru_utime + used.ru_stime)


@cache
def _program() -> str:
    if installed := shutil.which("wrk"):
        return installed
    program = _FETCHED / "usr" / "bin" / "wrk"
    if not program.exists():
        unpack(_FETCHED, "wrk", "libluajit-5.1-2")
    return str(program)
