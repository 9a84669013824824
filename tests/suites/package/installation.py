"""Clean Python environments with the wheel, each with a home folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import urllib3

from infra.prepare import LOCK, ROOT
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UV: Final = str(Path(sys.executable).with_name("uv"))
_VERSIONS: Final = ("3.11", "3.13")
_OWN_SETTINGS: Final = ("KHO_", "XDG_", "PYTHON", "VIRTUAL_ENV")
_SETTINGS_FILES: Final = {"NPM_CONFIG_USERCONFIG": "~/.npmrc", "PIP_CONFIG_FILE": "~/.config/pip/pip.conf"}
_START_SECONDS: Final = 300
"""The first start builds and fetches what no package has."""


@cache
def interpreters() -> dict[str, str]:
    """Return the Pythons to test by version: the oldest and the newest that Kho supports, or this one."""
    found = {version: python for version in _VERSIONS if (python := _find_python(version))}
    return found or {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}


def _find_python(version: str) -> str:
    command = [UV, "python", "find", "--no-project", "--no-python-downloads", version]
    process = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/")
    of_pyenv = Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python")
    return process.stdout.strip() or next(map(str, of_pyenv), "")


def await_file(folder: Path, pattern: str) -> None:
    """Return once the folder has such a file, which the first start makes."""
    deadline = time.monotonic() + _START_SECONDS
    while not any(folder.glob(pattern)):
        assert time.monotonic() < deadline, f"{folder} has no {pattern}"
        time.sleep(0.1)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout in `folder`."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Installation:
    """The wheel in an environment with this Python and no other program, and a user with an empty home folder."""

    def __init__(self, folder: Path, python: str, wheel: Path, *, with_npm: bool) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        for each in (self.home, self.work):
            each.mkdir(parents=True)
        environment = folder / "environment"
        subprocess.run([python, "-m", "venv", str(environment)], check=True)
        self.bin = environment / "bin"
        self.environment = _environment(self.home, self.bin)
        npm = shutil.which("npm")
        if with_npm and npm:
            self.environment["PATH"] += f"{os.pathsep}{Path(npm).parent}"
        command = [UV, "pip", "install", "--quiet", "--python", str(self.bin / "python")]
        subprocess.run([*command, "--constraints", str(LOCK), str(wheel)], check=True, cwd=folder)

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return the command of an installed program."""
        return [str(self.bin / program), *arguments]

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run an installed program in the user's folder."""
        command = self.command(program, *arguments)
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=_START_SECONDS,
            cwd=self.work,
            env=self.environment,
        )

    @contextmanager
    def serving(self) -> Iterator[Server]:
        """Run `kho serve` on free ports, with the default data folder."""
        output = self.home.parent / "serve.out"
        with output.open("w") as stream:
            process = subprocess.Popen(
                self.command("kho", "serve", "--port", "0", "--mqtt-port", "0"),
                stdout=stream,
                stderr=stream,
                cwd=self.work,
                env=self.environment,
            )
        try:
            with urllib3.PoolManager(retries=False, timeout=CEILING_SECONDS) as http:
                yield Server(process, output, http)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(CEILING_SECONDS)

    @contextmanager
    def background(self, commands: Sequence[Sequence[str]]) -> Iterator[None]:
        """Run programs in the user's folder while the block runs."""
        with ExitStack() as stack:
            for program, *arguments in commands:
                process = subprocess.Popen(
                    self.command(program, *arguments), cwd=self.work, env=self.environment, stdout=subprocess.DEVNULL
                )
                stack.callback(process.wait, CEILING_SECONDS)
                stack.callback(process.terminate)
            yield


class Server:
    """A running `kho serve`."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path, http: urllib3.PoolManager) -> None:
        self._output = output
        self._http = http
        deadline = time.monotonic() + _START_SECONDS
        while "listens on" not in self.printed:
            assert process.poll() is None, self.printed
            assert time.monotonic() < deadline, self.printed
            time.sleep(0.1)

    @property
    def printed(self) -> str:
        """The terminal output."""
        return self._output.read_text()

    def request(self, method: str, path: str, body: str = "", **headers: str) -> urllib3.BaseHTTPResponse:
        """Return the response to a request."""
        match = re.search(r"listens on (http://\S+)", self.printed)
        assert match
        options: dict[str, Any] = {"body": body.encode()} if body else {}
        return self._http.request(method, match[1] + path, headers=headers, **options)


def _environment(home: Path, programs: Path) -> dict[str, str]:
    """Return the environment of a user who has no other programs, but this machine's sources of packages."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_SETTINGS)}
    for name, file in _SETTINGS_FILES.items():
        if name not in kept and Path(file).expanduser().is_file():
            kept[name] = str(Path(file).expanduser())
    return kept | {"HOME": str(home), "PATH": str(programs)}
