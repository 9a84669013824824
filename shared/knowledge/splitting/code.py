"""Splitting of source code in any language by its layout. Definitions stay whole up to the size limit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from shared.knowledge.splitting.chunks import Block, Split, gather
from shared.knowledge.splitting.sizes import TARGET, fit, size

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFINITION: Final = re.compile(
    r"^(?P<signature>(?:(?:export|default|public|private|protected|internal|static|abstract|final|async|pub(?:\(\w+\))?)\s+)*"
    r"(?:def|class|func|function|fn|struct|enum|trait|impl|interface|type|module|namespace|object|record|resource)\b"
    r"[^\n{]*)"
)
_UNIT: Final = re.compile(r"(?<=\n\n)(?=\S)(?![}\])])")


def split_code(text: str, title: str) -> Split:
    """Split `text` at unindented lines after an empty line. The definition's signature is the heading."""
    return Split(title, gather(_blocks(text)))


def _blocks(text: str) -> Iterator[Block]:
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
