"""The content of a file, its text, and the hash that detects changes."""

from __future__ import annotations

import codecs
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from infra.agent.files.errors import UnreadableFile
from infra.agent.files.pdf import MAX_SECONDS, text_of
from infra.agent.files.roots import read_bytes
from shared.knowledge.splitting import format_of

if TYPE_CHECKING:
    from infra.agent.files.roots import RootedPath

MAX_TEXT_BYTES: Final = 4 << 20
_MAX_PDF_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class FileContent:
    """A snapshot of one file."""

    name: str
    content: bytes
    hash: str

    def text(self, seconds: int = MAX_SECONDS) -> str:
        """Return the text. The pages of a PDF, extracted within `seconds`, are separated by form feeds."""
        if format_of(self.name) == "pages":
            return text_of(self.content, seconds)
        if self.content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return _decode(self.content, "utf-16")
        if b"\0" in self.content[:8192]:
            raise UnreadableFile("is not text")
        return _decode(self.content, "utf-8-sig")


def read(location: RootedPath) -> FileContent:
    """Read a file. Raise `UnreadableFile` if it is too large or not a regular file."""
    is_pdf = format_of(location.name) == "pages"
    content = read_bytes(location, _MAX_PDF_BYTES if is_pdf else MAX_TEXT_BYTES)
    return FileContent(location.name, content, hashlib.sha256(content).hexdigest())


def _decode(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise UnreadableFile("is not UTF-8 text") from None
