"""Occurrences of a text in another. None splits a letter from its marks, or a carriage return from its line feed."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from shared.rpc.unicode_forms import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_OCCURRENCES: Final = 10_000
_LINE_BREAK: Final = re.compile(r"\r\n?")
_CHANGEABLE: Final = re.compile(r"\r\n?|[\x00-\x7f]?[^\x00-\x7f]+")
"""Line breaks, and letters that another normal form may write with other characters."""
_HANGUL_PARTS: Final = re.compile("[\u1160-\u11ff]")
_LIKENESS: Final = str.maketrans("‘’‚“”„–—…\u00a0", "'''\"\"\"--. ")
_MOST_SIMILAR: Final = 5
_LINE_LENGTH: Final = 100


class Span(NamedTuple):
    """A part of a text, from `start` up to `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The parts of a text that are the text wanted. If two overlap, those after them are left out."""

    spans: list[Span]
    overlap: bool = False


def find_occurrences(text: str, wanted: str) -> Occurrences:
    """Return where `wanted` occurs: exactly, or else with other line breaks or a canonically equivalent spelling."""
    exact = _find(text, wanted)
    return exact if exact.spans or exact.overlap else _find_equivalent(text, wanted)


def similar_lines(text: str, wanted: str) -> list[int]:
    """Return the starts of lines that may be meant by `wanted`: the same but for case, spaces, quotes and marks."""
    probe = max((_likeness(line) for line in wanted.splitlines()), key=len, default="")
    if not probe:
        return []
    starts, position = [], 0
    for line in text.split("\n"):
        if probe in _likeness(line):
            starts.append(position)
            if len(starts) == _MOST_SIMILAR:
                break
        position += len(line) + 1
    return starts


def line_number(text: str, position: int) -> int:
    """Return the number of the line, from 1, that has the character at `position`."""
    return text.count("\n", 0, position) + 1


def excerpt(text: str, position: int) -> str:
    """Return the line at `position`, or the part of it that begins there or shortly before."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    if position - start > _LINE_LENGTH // 2:
        start = position - _LINE_LENGTH // 4
    return text[start : min(len(text) if end < 0 else end, start + _LINE_LENGTH)].rstrip("\r")


def _likeness(line: str) -> str:
    if not line.isascii():
        letters = normalize("NFKD", line).translate(_LIKENESS)
        line = "".join(each for each in letters if not unicodedata.combining(each))
    return "".join(line.casefold().split())


def _find(text: str, wanted: str) -> Occurrences:
    spans: list[Span] = []
    end, start = 0, text.find(wanted)
    while start >= 0 and len(spans) <= MOST_OCCURRENCES:
        # A search after each of many overlapping occurrences would take time that grows with their square.
        if start < end:
            return Occurrences([*spans, Span(start, start + len(wanted))], overlap=True)
        end = start + len(wanted)
        if not (_splits(text, start) or _splits(text, end)):
            spans.append(Span(start, end))
        start = text.find(wanted, start + 1)
    return Occurrences(spans)


def _splits(text: str, position: int) -> bool:
    """Return True if a cut at `position` would separate what belongs together."""
    if not 0 < position < len(text):
        return False
    return _continues(text[position]) or (text[position] == "\n" and text[position - 1] == "\r")


def _continues(character: str) -> bool:
    """Return True for a character that belongs to the letter before it."""
    if character.isascii():
        return False
    return unicodedata.category(character).startswith("M") or bool(_HANGUL_PARTS.match(character))


def _find_equivalent(text: str, wanted: str) -> Occurrences:
    canonical = _CanonicalText(text)
    occurrences = _find(canonical.text, _CanonicalText(wanted).text)
    spans = []
    for span in occurrences.spans:
        start, end = canonical.original(span.start), canonical.original(span.end)
        if start is not None and end is not None:
            spans.append(Span(start, end))
    return Occurrences(spans, occurrences.overlap)


class _CanonicalText:
    """A text in NFC with line feeds alone, and the way from its positions back to those of the original."""

    def __init__(self, text: str) -> None:
        parts: list[str] = []
        self._starts: list[int] = []
        self._changes: list[tuple[int, Span]] = []
        length = done = 0
        for start, end in _changed_parts(text):
            canonical = "\n" if text[start] == "\r" else normalize("NFC", text[start:end])
            parts += text[done:start], canonical
            self._starts.append(length + start - done)
            length += start - done + len(canonical)
            self._changes.append((length, Span(start, end)))
            done = end
        self.text = "".join([*parts, text[done:]])

    def original(self, position: int) -> int | None:
        """Return the position in the original, or None if it is inside of a letter."""
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return position
        end, span = self._changes[index]
        if position == self._starts[index]:
            return span.start
        return span.end + position - end if position >= end else None


def _changed_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line break and letter that the canonical text has otherwise."""
    if text.isascii() or normalize("NFC", text) == text:
        yield from (match.span() for match in _LINE_BREAK.finditer(text))
        return
    for match in _CHANGEABLE.finditer(text):
        run, start = match[0], match.start()
        if run[0] == "\r":
            yield match.span()
        elif normalize("NFC", run) != run:
            cuts = [at for at in range(1, len(run)) if not _continues(run[at])]
            for first, last in zip([0, *cuts], [*cuts, len(run)], strict=True):
                letter = run[first:last]
                if normalize("NFC", letter) != letter:
                    yield start + first, start + last
