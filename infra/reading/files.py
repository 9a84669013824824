"""What a file says, and the hash by which a change is seen."""

from __future__ import annotations

import codecs
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from infra.reading.failures import Unreadable
from infra.reading.pdf import MAX_SECONDS, text_of
from infra.reading.roots import read_bytes
from shared.knowledge.splitting import format_of

if TYPE_CHECKING:
    from infra.reading.roots import Place

MAX_TEXT_BYTES: Final = 4 << 20
_MAX_PDF_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class File:
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
                return _decoded(self.content, encoding)
        if b"\0" in self.content[:8192]:
            raise Unreadable("is not text")
        return _decoded(self.content, "utf-8-sig")


def read(place: Place) -> File:
    """Read a file, unless it is too large or not a regular one."""
    is_pdf = format_of(place.name) == "pages"
    content = read_bytes(place, _MAX_PDF_BYTES if is_pdf else MAX_TEXT_BYTES)
    return File(place.name, content, hashlib.sha256(content).hexdigest())


def _decoded(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise Unreadable("is not UTF-8 text") from None
