"""PDFs to read."""

from __future__ import annotations

import zlib


def make_pdf(*pages: bytes, compressed: bool = False) -> bytes:
    """Return a PDF whose pages have these content streams."""
    count = len(pages)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (count, b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(count))),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, stream in enumerate(pages):
        content = zlib.compress(stream, 9) if compressed else stream
        how = b"/Filter /FlateDecode " if compressed else b""
        objects += [
            b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R /Resources << /Font << /F 3 0 R >> >> >>" % (5 + 2 * n),
            b"<< %s/Length %d >>\nstream\n%s\nendstream" % (how, len(content), content),
        ]
    document, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, each in enumerate(objects, start=1):
        offsets.append(len(document))
        document += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    start = len(document)
    document += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    document += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    document += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)
    return bytes(document)


def text_stream(text: bytes) -> bytes:
    """Return a content stream that shows this text."""
    return b"BT /F 12 Tf 72 720 Td (%s) Tj ET" % text
