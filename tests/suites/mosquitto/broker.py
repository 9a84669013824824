"""A mosquitto for one test, which allows devices their own topics and the backend all of them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.helpers.debian import unpack
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

FETCHED: Final = Path(sys.prefix) / "share" / "mosquitto"
_PACKAGES: Final = ("mosquitto", "libcjson1", "libdlt2", "libwebsockets17", "libwrap0")

_RULES: Final = """
user kho
topic readwrite devices/#
pattern write devices/%c/up
pattern read devices/%c/down
"""


def find() -> Path | None:
    """Return the path of mosquitto: fetched for these tests, or installed."""
    fetched = FETCHED / "usr" / "sbin" / "mosquitto"
    installed = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")
    return fetched if fetched.exists() else Path(installed) if installed else None


def fetch() -> None:
    """Fetch mosquitto from Debian."""
    unpack(FETCHED, *_PACKAGES)


def environment() -> dict[str, str]:
    """Return the environment in which the fetched mosquitto finds its libraries."""
    libraries = ":".join(str(each) for each in (FETCHED / "usr" / "lib").glob("*-linux-gnu"))
    return os.environ | {"LD_LIBRARY_PATH": libraries}


@contextmanager
def running_mosquitto(folder: Path) -> Iterator[int]:
    """Run mosquitto. Yield its port."""
    program = find()
    assert program, "run this with 'make mosquitto', which fetches it"
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
    (folder / "rules").write_text(_RULES)
    (folder / "conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nacl_file {folder / 'rules'}\nuser root\nlog_dest none\n"
    )
    process = subprocess.Popen([str(program), "-c", str(folder / "conf")], env=environment())
    try:
        _wait(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(CEILING_SECONDS)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + CEILING_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=CEILING_SECONDS).close()
        except OSError:
            assert process.poll() is None, "mosquitto did not start"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return
