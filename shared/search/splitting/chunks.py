"""Groups a document's blocks into chunks: whole blocks of one section, about as many as fit an embedder."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.search.passages import Passage, cut_heading
from shared.search.splitting.sizes import LIMIT, TARGET, cut, fit, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from shared.search.passages import ContentType, DocumentRef

_MAX_FRAME: Final = 2_000
"""Characters that each piece of a table or of code may repeat. Blanks have no size in tokens."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document that is found as one."""

    text: str
    heading_path: tuple[str, ...] = ()
    content_type: ContentType = "prose"


@dataclass(frozen=True, slots=True)
class Split:
    """A document's title and its chunks in order."""

    title: str
    chunks: list[Chunk]

    def passages(self, document: DocumentRef, revision: int, title: str, tags: tuple[str, ...] = ()) -> list[Passage]:
        """Return the chunks as passages of a document that is stored under `title`."""
        return [
            Passage(
                document=document,
                ordinal=ordinal,
                text=chunk.text,
                revision=revision,
                title=title,
                source=document.document_id,
                heading_path=chunk.heading_path,
                content_type=chunk.content_type,
                tags=tags,
            )
            for ordinal, chunk in enumerate(self.chunks)
        ]


@dataclass(frozen=True, slots=True)
class Block(Chunk):
    """A block that is not cut, with the headings above it. A heading is a block too."""

    is_heading: bool = False


def gather(blocks: Iterable[Block]) -> list[Chunk]:
    """Group whole blocks into chunks. A section starts a new chunk, and headings stay with the following block."""
    chunks: list[Chunk] = []
    group: list[Block] = []
    group_size = 0.0
    for block in blocks:
        block_size = size(block.text)
        only_headings = all(each.is_heading for each in group)
        begins_section = (block.is_heading or block.heading_path != group[-1].heading_path) if group else False
        is_full = group_size + block_size > (LIMIT if only_headings else TARGET)
        if group and (is_full or (begins_section and not only_headings)):
            chunks += _chunk(group)
            group, group_size = [], 0.0
        group.append(block)
        group_size += block_size
    return chunks + list(_chunk(group))


def framed(head: str, body: str, tail: str) -> list[str]:
    """Cut `body` into pieces that each get `head` and `tail`: a fence's marks or a table's header."""
    whole = head + body + tail
    available = TARGET - size(head) - size(tail)
    if size(whole) <= LIMIT or available < TARGET / 2 or len(head) + len(tail) > _MAX_FRAME:
        return fit(whole)
    ended = (piece if piece.endswith("\n") else f"{piece}\n" for piece in cut(body, available))
    return [f"{head}{piece}{tail}" for piece in ended]


def _chunk(group: list[Block]) -> Iterator[Chunk]:
    text = "".join(block.text for block in group).strip("\n")
    if not text.strip():
        return
    weights: Counter[ContentType] = Counter()
    for block in group:
        if not block.is_heading:
            weights[block.content_type] += len(block.text)
    kind = weights.most_common(1)[0][0] if weights else "prose"
    yield Chunk(text, tuple(map(cut_heading, group[-1].heading_path)), kind)
