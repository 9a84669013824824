"""Gathering a document's blocks into chunks: whole blocks, one section, about as much as an embedder takes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.knowledge.splitting.sizes import LIMIT, TARGET, cut, fit, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from shared.knowledge.passages import ContentType


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that is found as one."""

    text: str
    heading_path: tuple[str, ...]
    content_type: ContentType


@dataclass(frozen=True, slots=True)
class Split:
    """A document's title, and its chunks in their order."""

    title: str
    chunks: list[Chunk]


@dataclass(frozen=True, slots=True)
class Block:
    """What is not to be cut, with the headings that it stands under; a heading itself is one too."""

    text: str
    heading_path: tuple[str, ...] = ()
    content_type: ContentType = "prose"
    is_heading: bool = False


def gather(blocks: Iterable[Block]) -> list[Chunk]:
    """Chunks of whole blocks: a section begins a new one, and headings go with what follows them."""
    chunks: list[Chunk] = []
    group: list[Block] = []
    group_size = 0.0
    for block in blocks:
        block_size = size(block.text)
        only_headings = all(each.is_heading for each in group)
        begins_section = (block.is_heading or block.heading_path != group[-1].heading_path) if group else False
        full = group_size + block_size > (LIMIT if only_headings else TARGET)
        if group and (full or (begins_section and not only_headings)):
            chunks += _chunk(group)
            group, group_size = [], 0.0
        group.append(block)
        group_size += block_size
    return chunks + list(_chunk(group))


def framed(head: str, body: str, tail: str) -> list[str]:
    """`body` in pieces that each stand between `head` and `tail`: a fence's marks, a table's header."""
    whole = head + body + tail
    room = TARGET - size(head) - size(tail)
    if size(whole) <= LIMIT or room < TARGET / 2:
        return fit(whole)
    return [f"{head}{_line(piece)}{tail}" for piece in cut(body, room)]


def _line(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


def _chunk(group: list[Block]) -> Iterator[Chunk]:
    text = "".join(block.text for block in group).strip("\n")
    if not text.strip():
        return
    weights: Counter[ContentType] = Counter()
    for block in group:
        if not block.is_heading:
            weights[block.content_type] += len(block.text)
    kind = weights.most_common(1)[0][0] if weights else "prose"
    yield Chunk(text, group[-1].heading_path, kind)
