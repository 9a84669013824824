"""What a file says, and the hash by which a change is seen."""

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
    """One file as it was when it was read."""

    name: str
    content: bytes
    hash: str

    def text(self, seconds: int = MAX_SECONDS) -> str:
        """What it says; the pages of a PDF, unpacked within `seconds`, parted by form feeds."""
        if format_of(self.name) == "pages":
            return text_of(self.content, seconds)
        for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
            if self.content.startswith(mark):
                return _decode(self.content, encoding)
        if b"\0" in self.content[:8192]:
            raise UnreadableFile("is not text")
        return _decode(self.content, "utf-8-sig")


def read(place: RootedPath) -> FileContent:
    """Read a file, unless it is too large or not a regular one."""
    is_pdf = format_of(place.name) == "pages"
    content = read_bytes(place, _MAX_PDF_BYTES if is_pdf else MAX_TEXT_BYTES)
    return FileContent(place.name, content, hashlib.sha256(content).hexdigest())


def _decode(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise UnreadableFile("is not UTF-8 text") from None
