"""Splitting of plain text by paragraphs, and of paged text by pages and paragraphs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from shared.knowledge.splitting.chunks import Block, Split, gather
from shared.knowledge.splitting.sizes import fit

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE_BREAK: Final = "\f"
_PARAGRAPH: Final = re.compile(r"(?<=\n)(?=[ \t]*\n)")


def split_text(text: str, title: str) -> Split:
    """Split `text` by its paragraphs."""
    return Split(title, gather(_paragraphs(text, ())))


def split_pages(text: str, title: str) -> Split:
    """Split the text of a document whose pages are separated by form feeds. The page number is the heading."""
    pages = enumerate(text.split(PAGE_BREAK), start=1)
    return Split(title, gather(block for number, page in pages for block in _paragraphs(page, (f"Page {number}",))))


def _paragraphs(text: str, path: tuple[str, ...]) -> Iterator[Block]:
    for paragraph in _PARAGRAPH.split(text):
        for piece in fit(paragraph):
            yield Block(piece, path)
