"""Text extraction from PDFs, in a child process with limited memory and time.

The child process runs this module: it reads a PDF from its standard input, and writes the pages' text to its standard
output.
"""

from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from shared.knowledge.text_encoding import NotText
from shared.platform.python_process import module_command
from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from pypdf import PageObject

MAX_SECONDS: Final = 30
_MAX_MEMORY_BYTES: Final = 1 << 30
_MAX_TEXT_BYTES: Final = 4 << 20
_MAX_PAGE_OPERATORS: Final = 250_000
"""More are a drawing, and take pypdf many seconds."""
_OPERATOR: Final = re.compile(rb"[A-Za-z'\"*]+")
_PAGE_BREAK: Final = "\f"
_TOO_LARGE: Final = "unpacks to more than a document may hold"


def text_of(content: bytes, seconds: int = MAX_SECONDS) -> str:
    """Extract the text of each page within `seconds`. Pages are separated by form feeds."""
    # Isolated mode and another working directory, so that files in the folder are never imported as modules.
    command = [*module_command("shared.knowledge.pdf", isolated=True), str(seconds)]
    inherited = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")
    environment = {name: runtime.environment[name] for name in inherited if name in runtime.environment}
    try:
        process = subprocess.run(  # noqa: S603 - no outside input in the command
            command,
            input=content,
            capture_output=True,
            timeout=seconds,
            check=False,
            env=environment,
            cwd=sys.prefix,
        )
    except subprocess.TimeoutExpired:
        raise NotText(f"takes longer than {seconds} s to unpack") from None
    if process.returncode == 1:
        raise NotText(process.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or "is not a PDF")
    if process.returncode:
        raise NotText(_TOO_LARGE)
    text = process.stdout.decode("utf-8", "replace")
    if not text.strip():
        raise NotText("holds no text: its pages are pictures")
    return text


def _main() -> None:
    _limit_resources(seconds=int(sys.argv[1]))
    logging.disable()
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    written = 0
    try:
        reader = PdfReader(io.BytesIO(sys.stdin.buffer.read()))
        if reader.is_encrypted and not reader.decrypt(""):
            sys.exit("is encrypted")
        for number, page in enumerate(reader.pages):
            if _has_too_many_operators(page):
                sys.exit(f"has more than {_MAX_PAGE_OPERATORS:,} drawing operators on page {number + 1}")
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
    except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, NotImplementedError):
        # pypdf does not check for every defect: its parser fails with exceptions of many types.
        sys.exit("is not a PDF that can be read")


def _has_too_many_operators(page: PageObject) -> bool:
    """Count letters between other characters in a page's stream: its operators, and words of its text."""
    contents = page.get_contents()
    data = b"" if contents is None else contents.get_data()
    # An operator takes two characters at least.
    if len(data) < 2 * _MAX_PAGE_OPERATORS:
        return False
    return sum(1 for _ in _OPERATOR.finditer(data)) > _MAX_PAGE_OPERATORS


def _limit_resources(*, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; only the parent's time-out applies there
        return
    os.nice(10)  # work for which a caller waits goes first
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    # Ends a child whose parent was killed.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds + 1, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _main()
