"""Reading PDFs: their text, and the reasons for skipping some."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

from infra.clients.agent.files.reader import FileReader
from infra.clients.agent.files.roots import Roots
from shared.knowledge.folder_sync import FoundFile, InvalidFile
from shared.knowledge.models import MAX_TEXT_BYTES
from shared.knowledge.pdf import text_of
from shared.knowledge.text_encoding import NotText
from shared.search.splitting import split
from tests.helpers.pdf import make_pdf, text_stream

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 600
"""Time for decompression in tests that are not about time."""


def test_a_pdf_is_read_page_by_page() -> None:
    content = make_pdf(text_stream(b"first page"), text_stream(b"second page"), compressed=True)
    chunks = split("x.pdf", text_of(content, _SECONDS)).chunks
    assert [(chunk.heading_path, chunk.text) for chunk in chunks] == [
        (("Page 1",), "first page"),
        (("Page 2",), "second page"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"%PDF-1.4 and then nothing", "is not a PDF"),
        (b"", "is not a PDF"),
        (make_pdf(b""), "holds no text"),
        (make_pdf(text_stream(b"x" * 100_000) * 50, compressed=True), "unpacks to more"),
        (
            make_pdf(text_stream(b"x"), b"q Q " * 125_000 + text_stream(b"x"), compressed=True),
            "more than 250,000 drawing operators on page 2",
        ),
    ],
    ids=["broken", "empty", "pictures", "much text", "a drawing"],
)
def test_unreadable_pdf_reports_the_reason(content: bytes, said: str) -> None:
    with pytest.raises(NotText, match=said):
        text_of(content, _SECONDS)


def test_pdf_bomb_times_out() -> None:
    compressor = zlib.compressobj(9)
    packed = b"".join(compressor.compress(bytes(1 << 20)) for _ in range(400)) + compressor.flush()
    bomb = (
        make_pdf(b"@@")
        .replace(b"/Length 2 >>", b"/Filter /FlateDecode /Length %d >>" % len(packed))
        .replace(b"@@", packed)
    )
    assert len(bomb) < MAX_TEXT_BYTES
    with pytest.raises(NotText) as refusal:
        text_of(bomb, _SECONDS)
    assert "takes longer" not in str(refusal.value)  # the size limit ends it, not the time limit


def test_slow_pdf_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(make_pdf(text_stream(b"x")))
    (file,) = FileReader(Roots([tmp_path]), seconds=0).find("x.pdf", recursive=False).files
    assert isinstance(file, FoundFile)
    assert file.document() == InvalidFile("x.pdf", "takes longer than 0 s to unpack")
