"""Sections of Markdown: the text below a heading, up to the next heading of its level or above."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.documents.occurrences import Span
from shared.rpc.unicode_forms import normalize
from shared.search.splitting.markdown import heading_text, headings

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NEXT: Final = "next"


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its headings from the top down, the part of the text below the last one, and where that one begins."""

    path: tuple[str, ...]
    heading: int
    content: Span
    before_underlined: bool
    """True if a heading follows that is marked by the line below it."""

    @property
    def name(self) -> str:
        """Return the headings in one line."""
        return " > ".join(self.path)


def sections(text: str) -> list[Section]:
    """Return the sections of a Markdown text, in order."""
    offsets = [0, *(line.end() for line in _LINE.finditer(text))]
    found = headings(text)
    ends = [len(text)] * len(found)
    underlined = [False] * len(found)
    open_headings: list[int] = []
    paths: list[tuple[str, ...]] = []
    for number, heading in enumerate(found):
        while open_headings and found[open_headings[-1]].level >= heading.level:
            ended = open_headings.pop()
            ends[ended], underlined[ended] = offsets[heading.line], heading.underlined
        above = paths[open_headings[-1]] if open_headings else ()
        paths.append((*above, normalize("NFC", heading.name)))
        open_headings.append(number)
    return [
        Section(path, offsets[heading.line], Span(offsets[heading.end], end), before)
        for heading, path, end, before in zip(found, paths, ends, underlined, strict=True)
    ]


def matching_sections(all_sections: Sequence[Section], path: Sequence[str]) -> list[Section]:
    """Return the sections of a path: those of exactly this path, or else those whose path ends with it."""
    wanted = [{" ".join(text.split()), heading_text(text)} for text in (normalize("NFC", name) for name in path)]

    def ends_with_path(section: Section) -> bool:
        names = section.path[-len(wanted) :]
        return len(names) == len(wanted) and all(map(set.__contains__, wanted, names))

    matching = [each for each in all_sections if ends_with_path(each)]
    return [each for each in matching if len(each.path) == len(wanted)] or matching


def similar_sections(all_sections: Sequence[Section], path: Sequence[str]) -> list[Section]:
    """Return the sections, those with a heading like the last of the path first."""
    wanted = path[-1].strip("#* ").casefold()

    def distance(section: Section) -> int:
        name = section.path[-1].casefold()
        return 0 if name == wanted else 1 if wanted in name else 2

    return sorted(all_sections, key=distance)


def with_section(text: str, section: Section, body: str) -> tuple[str, Span]:
    """Return the text with another content of a section, and where that stands.

    The blank lines around the content stay. Where none are, a section that was empty gets one before it and after it.
    """
    old = text[section.content.start : section.content.end]
    lines = _LINE.findall(old)
    filled = [number for number, line in enumerate(lines) if line.strip()]
    first, last = (filled[0], filled[-1] + 1) if filled else (len(lines), len(lines))
    line_break = _line_break(text, section)
    before = "".join(lines[:first]) if filled else line_break
    after = "".join(lines[last:]) if filled else line_break
    follows = section.content.end < len(text)
    if not body.strip():
        before = body = ""
    elif not body.endswith(("\n", "\r")) and (follows or text.endswith(("\n", "\r"))):
        body += line_break
    if not follows and not filled:
        after = ""
    elif section.before_underlined and not after:
        after = line_break
    head = text[: section.content.start]
    if not head.endswith(("\n", "\r")):
        head += line_break
    start = len(head) + len(before)
    return "".join((head, before, body, after, text[section.content.end :])), Span(start, start + len(body))


def leaves_block_open(body: str) -> bool:
    """Return True if a heading after `body` would be a part of its last block, such as of unclosed code."""
    following = headings(f"{body}\n\n# {_NEXT}\n")
    return not following or following[-1].name != _NEXT


def _line_break(text: str, section: Section) -> str:
    heading = _LINE.match(text, section.heading)
    ending = heading[0][len(heading[0].rstrip("\r\n")) :] if heading else ""
    return ending or ("\r\n" if "\r\n" in text else "\n")
