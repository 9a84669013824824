"""The text of a PDF, read in a process of its own that a hostile one cannot make large or slow.

As `python -I -m infra.agent.files.pdf` this file is that process: a PDF on its input, its pages' text on its output.
"""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from typing import Final

from infra.agent.files.errors import UnreadableFile

MAX_SECONDS: Final = 30
_MAX_MEMORY_BYTES: Final = 1 << 30
_MAX_TEXT_BYTES: Final = 4 << 20
_PAGE_BREAK: Final = "\f"
_TOO_LARGE: Final = "unpacks to more than a document may hold"


def text_of(content: bytes, seconds: int = MAX_SECONDS) -> str:
    """The text of each page, parted by form feeds, if it is unpacked within `seconds`."""
    # Isolated, and started elsewhere: what lies in the folder that is being read is never taken for a module of ours.
    command = [sys.executable, "-I", "-m", "infra.agent.files.pdf", str(seconds)]
    kept = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    try:
        done = subprocess.run(  # noqa: S603 - our own words only
            command,
            input=content,
            capture_output=True,
            timeout=seconds,
            check=False,
            env=environment,
            cwd=sys.prefix,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableFile(f"takes longer than {seconds} s to unpack") from None
    if done.returncode == 1:
        raise UnreadableFile(done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or "is not a PDF")
    if done.returncode:
        raise UnreadableFile(_TOO_LARGE)
    text = done.stdout.decode("utf-8", "replace")
    if not text.strip():
        raise UnreadableFile("holds no text: its pages are pictures")
    return text


def _main() -> None:
    _bound(seconds=int(sys.argv[1]))
    logging.disable()
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    written = 0
    try:
        reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
        if reader.is_encrypted and not reader.decrypt(""):
            sys.exit("is encrypted")
        for number, page in enumerate(reader.pages):
            text = (_PAGE_BREAK if number else "") + page.extract_text().replace(_PAGE_BREAK, "\n")
            encoded = text.encode("utf-8", "replace")
            written += len(encoded)
            if written > _MAX_TEXT_BYTES:
                sys.exit(_TOO_LARGE)
            sys.stdout.buffer.write(encoded)
    except MemoryError:
        sys.exit(_TOO_LARGE)
    except RecursionError:
        sys.exit("is nested too deeply")
    except (
        PyPdfError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        ArithmeticError,
        NotImplementedError,
    ):
        # What pypdf raises of a broken file depends on where it is broken.
        sys.exit("is not a PDF that can be read")


def _bound(*, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # no such limits on Windows; the time limit must do there
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    # For one whose parent is gone: the parent waits no longer either.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _main()
