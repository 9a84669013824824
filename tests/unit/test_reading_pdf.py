"""Reading PDFs: what they say, and why some are left out."""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING

import pytest

from infra.reading.failures import Unreadable
from infra.reading.files import MAX_TEXT_BYTES, read
from infra.reading.folders import scan
from infra.reading.reader import FileReader, ReadFile
from infra.reading.roots import Roots
from shared.knowledge.reading import Unfit
from shared.knowledge.splitting import split
from tests.pdfs import pdf, shown

if TYPE_CHECKING:
    from pathlib import Path


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(pdf(shown(b"first page"), shown(b"second page"), compressed=True))
    (place,) = scan(Roots([tmp_path]), "x.pdf", recursive=False).files
    chunks = split(place.name, read(place).text()).chunks
    assert [(chunk.heading_path, chunk.text) for chunk in chunks] == [
        (("Page 1",), "first page"),
        (("Page 2",), "second page"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"%PDF-1.4 and then nothing", "is not a PDF"),
        (b"", "is not a PDF"),
        (pdf(b""), "holds no text"),
        (pdf(shown(b"x" * 1000) * 5000, compressed=True), "unpacks to more"),
    ],
    ids=["broken", "empty", "pictures", "much text"],
)
def test_a_pdf_that_cannot_be_read_says_why(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "x.pdf").write_bytes(content)
    (place,) = scan(Roots([tmp_path]), "x.pdf", recursive=False).files
    with pytest.raises(Unreadable, match=said):
        read(place).text()


def test_a_bomb_of_a_pdf_ends_in_time(tmp_path: Path) -> None:
    compressor = zlib.compressobj(9)
    packed = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(400)) + compressor.flush()
    bomb = (
        pdf(b"@@").replace(b"/Length 2 >>", b"/Filter /FlateDecode /Length %d >>" % len(packed)).replace(b"@@", packed)
    )
    (tmp_path / "x.pdf").write_bytes(bomb)
    assert len(bomb) < MAX_TEXT_BYTES
    (place,) = scan(Roots([tmp_path]), "x.pdf", recursive=False).files
    started = time.monotonic()
    with pytest.raises(Unreadable):
        read(place).text()
    assert time.monotonic() - started < 25


def test_a_pdf_that_takes_long_is_left_out_in_time(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(pdf(b"BT /F 12 Tf " + b"0 -1 Td (a) Tj " * 500_000 + b"ET", compressed=True))
    (file,) = FileReader(Roots([tmp_path]), seconds=2).find("x.pdf", recursive=False).files()
    assert isinstance(file, ReadFile)
    started = time.monotonic()
    assert file.document() == Unfit("x.pdf", "takes longer than 2 s to unpack")
    assert time.monotonic() - started < 10
