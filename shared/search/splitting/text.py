"""Splitting of plain text by paragraphs, of paged text by pages and paragraphs, and of source code by its layout.

Definitions of source code in any language stay whole up to the size limit.
"""

import re
from collections.abc import Iterator
from typing import Final

from shared.search.splitting.chunks import Block, Split, gather
from shared.search.splitting.sizes import TARGET, fit, size

PAGE_BREAK: Final = "\f"
_DEFINITION: Final = re.compile(
    r"^(?P<signature>(?:(?:export|default|public|private|protected|internal|static|abstract|final|async|pub(?:\(\w+\))?)\s+)*"
    r"(?:def|class|func|function|fn|struct|enum|trait|impl|interface|type|module|namespace|object|record|resource)\b"
    r"[^\n{]*)"
)
_UNIT: Final = re.compile(r"(?<=\n\n)(?=\S)(?![}\])])")
_PARAGRAPH: Final = re.compile(r"(?<=\n)(?=[ \t]*\n)")


def split_text(text: str, title: str) -> Split:
    """Split `text` by its paragraphs."""
    return Split(title, gather(_paragraphs(text, ())))


def split_pages(text: str, title: str) -> Split:
    """Split the text of a document whose pages are separated by form feeds. The page number is the heading."""
    pages = enumerate(text.split(PAGE_BREAK), start=1)
    return Split(title, gather(block for number, page in pages for block in _paragraphs(page, (f"Page {number}",))))


def split_code(text: str, title: str) -> Split:
    """Split `text` at unindented lines after an empty line. The definition's signature is the heading."""
    return Split(title, gather(_definitions(text)))


def _paragraphs(text: str, path: tuple[str, ...]) -> Iterator[Block]:
    for paragraph in _PARAGRAPH.split(text):
        for piece in fit(paragraph):
            yield Block(piece, path)


def _definitions(text: str) -> Iterator[Block]:
    for group in _groups(_UNIT.split(text)):
        heading = next((match for line in group.splitlines() if (match := _DEFINITION.match(line))), None)
        path = (heading["signature"].rstrip(" :\t"),) if heading else ()
        for piece in fit(group):
            yield Block(piece, path, "code_block")


def _groups(units: list[str]) -> Iterator[str]:
    """Group small definitions. Larger ones stay alone."""
    group, group_size = "", 0.0
    for unit in units:
        unit_size = size(unit)
        if group and group_size + unit_size > TARGET:
            yield group
            group, group_size = "", 0.0
        group += unit
        group_size += unit_size
    yield group
