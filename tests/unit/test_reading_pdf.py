"""Reading PDFs: what they say, and why some are left out."""

from __future__ import annotations

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

_SECONDS = 600
"""For unpacking, where the test is not about the time."""


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(pdf(shown(b"first page"), shown(b"second page"), compressed=True))
    (place,) = scan(Roots([tmp_path]), "x.pdf", recursive=False).files
    chunks = split(place.name, read(place).text(_SECONDS)).chunks
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
        read(place).text(_SECONDS)


def test_a_bomb_of_a_pdf_ends_in_time(tmp_path: Path) -> None:
    compressor = zlib.compressobj(9)
    packed = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(400)) + compressor.flush()
    bomb = (
        pdf(b"@@").replace(b"/Length 2 >>", b"/Filter /FlateDecode /Length %d >>" % len(packed)).replace(b"@@", packed)
    )
    (tmp_path / "x.pdf").write_bytes(bomb)
    assert len(bomb) < MAX_TEXT_BYTES
    (place,) = scan(Roots([tmp_path]), "x.pdf", recursive=False).files
    with pytest.raises(Unreadable) as refusal:
        read(place).text(_SECONDS)
    assert "takes longer" not in str(refusal.value)  # its size ends it, not the time


def test_a_pdf_that_takes_long_is_left_out_in_time(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(pdf(shown(b"x")))
    (file,) = FileReader(Roots([tmp_path]), seconds=0).find("x.pdf", recursive=False).files()
    assert isinstance(file, ReadFile)
    assert file.document() == Unfit("x.pdf", "takes longer than 0 s to unpack")
