"""Edits of a text: each changes a part of it, at a place that is the only one, or is refused with the candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from shared.documents import errors
from shared.documents.models import MAX_BODY_BYTES
from shared.documents.occurrences import (
    MOST_OCCURRENCES,
    Span,
    excerpt,
    find_occurrences,
    line_number,
    similar_lines,
)
from shared.rpc.errors import FieldProblem, InvalidParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shared.documents.models import MimeType

_MOST_CANDIDATES: Final = 10
_MOST_NAMED: Final = 3
"""The places, keys or edits that a line names."""
_NAME_LENGTH: Final = 60
_TOLD_BYTES: Final = MAX_BODY_BYTES // 8
"""When less is left of the largest text, each edit says so."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A text that occurs `count` times, and the one to put in each place."""

    old: str
    new: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class SectionEdit:
    """The headings that lead to a section, and its new text."""

    heading: tuple[str, ...]
    body: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a document: exactly one of these has a value."""

    append: str | None = None
    prepend: str | None = None
    replace: Replacement | None = None
    section: SectionEdit | None = None
    metadata: dict[str, Any] | None = None
    restore_revision: int | None = None


class Edited(NamedTuple):
    """A text after an edit, and a description of the change in a line."""

    text: str
    change: str


def edit_text(text: str, mime_type: MimeType, edit: Edit, field: str) -> Edited:
    """Apply an edit of the text, which `field` names in errors."""
    edited = _edit_text(text, mime_type, edit, field)
    if len(edited.text.encode("utf-8")) > MAX_BODY_BYTES:
        raise errors.body_too_large(MAX_BODY_BYTES)
    return edited


def edit_metadata(metadata: dict[str, Any], changes: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the metadata with the changed keys and without those that are null, and a description of the change."""
    merged = {name: value for name, value in (metadata | changes).items() if value is not None or name not in changes}
    removed = [name for name, value in changes.items() if value is None]
    set_ = [name for name, value in changes.items() if value is not None]
    parts = [f"{verb} {_named(map(_short, names))}" for verb, names in (("set", set_), ("removed", removed)) if names]
    return merged, f"metadata: {', '.join(parts)}"


def summary(changes: Sequence[str], body: str | None) -> str:
    """Return the changes in one line, and the bytes that are left if they are few."""
    line = _named(changes, "; ")
    left = MAX_BODY_BYTES if body is None else MAX_BODY_BYTES - len(body.encode("utf-8"))
    return f"{line}; {left} bytes are left of {MAX_BODY_BYTES}" if left < _TOLD_BYTES else line


def _edit_text(text: str, mime_type: MimeType, edit: Edit, field: str) -> Edited:
    if edit.append is not None:
        edited = text + edit.append
        return Edited(edited, f"appended {_lines(edited, Span(len(text), len(edited)))}")
    if edit.prepend is not None:
        edited = edit.prepend + text
        return Edited(edited, f"prepended {_lines(edited, Span(0, len(edit.prepend)))}")
    if edit.replace is not None:
        return _replace(text, edit.replace, f"{field}.replace")
    assert edit.section is not None
    return _edit_section(text, mime_type, edit.section, f"{field}.section")


def _replace(text: str, edit: Replacement, field: str) -> Edited:
    occurrences = find_occurrences(text, edit.old)
    spans = occurrences.spans
    if occurrences.overlap or len(spans) != edit.count:
        if not spans:
            places = similar_lines(text, edit.old)
            problem = "'old' does not occur in the text"
        else:
            places = [span.start for span in spans]
            more = "more than " if len(spans) > MOST_OCCURRENCES else ""
            number = min(len(spans), MOST_OCCURRENCES)
            problem = f"'old' occurs {more}{number} time{'s' * (number > 1)}, not {edit.count}"
            if occurrences.overlap:
                problem = "'old' occurs at places that overlap"
        candidates = [_candidate(text, place) for place in places[:_MOST_CANDIDATES]]
        raise errors.no_single_match(field, _with_lines(problem, candidates, similar=not spans), candidates)
    new = edit.new
    if "\r\n" in text[slice(*spans[0])] and "\r" not in edit.old:
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    if len(text) + sum(len(new) - (end - start) for start, end in spans) > MAX_BODY_BYTES:
        raise errors.body_too_large(MAX_BODY_BYTES)
    parts: list[str] = []
    position = 0
    for start, end in spans:
        parts += text[position:start], new
        position = end
    edited = "".join([*parts, text[position:]])
    first = spans[0].start
    if edit.count == 1:
        return Edited(edited, f"replaced {_lines(edited, Span(first, first + len(new)))}")
    return Edited(edited, f"replaced {len(spans)} places, the first in line {line_number(edited, first)}")


def _edit_section(text: str, mime_type: MimeType, edit: SectionEdit, field: str) -> Edited:
    from shared.documents.sections import (
        leaves_block_open,
        matching_sections,
        sections,
        similar_sections,
        with_section,
    )

    all_sections = sections(text) if mime_type == "text/markdown" else []
    matching = matching_sections(all_sections, edit.heading)
    if len(matching) != 1:
        near = matching or similar_sections(all_sections, edit.heading)
        candidates: list[dict[str, Any]] = [
            {"line": line_number(text, each.heading), "heading": [_short(name) for name in each.path]}
            for each in near[:_MOST_CANDIDATES]
        ]
        if matching:
            problem = f"{len(matching)} sections have this heading"
        elif all_sections:
            problem = "no section has this heading"
        else:
            problem = "the text has no headings" if mime_type == "text/markdown" else f"{mime_type} has no headings"
        places = [{"line": each["line"], "text": " > ".join(each["heading"])} for each in candidates]
        raise errors.no_single_match(field, _with_lines(problem, places, similar=not matching), candidates)
    section = matching[0]
    if section.content.end < len(text) and leaves_block_open(edit.body):
        message = "leaves a block open, such as code, which would take in the heading that follows"
        raise InvalidParams(FieldProblem(field=f"{field}.body", message=message))
    edited, span = with_section(text, section, edit.body)
    return Edited(edited, f"section {_short(section.name)}: {_lines(edited, span)}")


def _candidate(text: str, position: int) -> dict[str, Any]:
    return {"line": line_number(text, position), "text": excerpt(text, position)}


def _with_lines(problem: str, candidates: Sequence[dict[str, Any]], *, similar: bool) -> str:
    if not candidates:
        return f"{problem}."
    places = _named(dict.fromkeys(f"{each['line']} “{_short(each['text'])}”" for each in candidates), "; ")
    return f"{problem}. {'Similar is' if similar else 'See'} line {places}."


def _lines(text: str, span: Span) -> str:
    first, last = line_number(text, span.start), line_number(text, max(span.start, span.end - 1))
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= _NAME_LENGTH else f"{line[: _NAME_LENGTH - 1]}…"


def _named(names: Iterable[str], separator: str = ", ") -> str:
    each = list(names)
    rest = len(each) - _MOST_NAMED
    return separator.join(each[:_MOST_NAMED]) + (f"{separator}and {rest} more" if rest > 0 else "")
