"""Splitting of HTML by its headings, paragraphs, code and tables, without invisible elements and navigation.

A page is read as a stream of tags and texts. No tree is built, because HTML's rules of nesting let a small page become
a huge or a deep tree.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from shared.search.splitting.chunks import Block, Split, framed, gather
from shared.search.splitting.sizes import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from shared.search.passages import ContentType

# Each token ends at the page's end if not before, so that none is tried twice.
_TOKEN: Final = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*(?:>|\Z)|</(?:[^A-Za-z>][^>]*)?(?:>|\Z)"
    r"|<(?P<slash>/?)(?P<name>[A-Za-z][^\s/>]*)"
    r"(?P<attributes>(?:[^>=]+|=\s*(?:\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z))?)*+)(?:>|\Z)"
    r"|(?P<text>(?:[^<]+|<(?![A-Za-z/!?]))++)",
    re.DOTALL,
)
_ALT: Final = re.compile(r"(?:^|[\s\"'/])alt\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_LONG_REFERENCE: Final = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
"""A reference to no character. Python refuses to convert thousands of digits."""
_UNPARSED: Final = ("script", "style", "iframe", "noscript", "title", "textarea", "noembed", "noframes", "xmp")
"""Elements whose content has no tags, or none that is read."""
_INVISIBLE: Final = frozenset({"script", "style", "iframe", "noscript", "noembed", "noframes"})
_HIDDEN: Final = frozenset({"template", "svg", "object", "math"})
"""Elements that are left out with everything inside of them."""
_PREFERRED: Final = ("main", "article")
_SECTIONS: Final = (*_PREFERRED, "section")
_ALWAYS_LEFT_OUT: Final = ("nav", "footer")
_LEFT_OUT_OF_PAGES: Final = ("header", "aside")
_LANDMARKS: Final = frozenset({*_SECTIONS, *_ALWAYS_LEFT_OUT, *_LEFT_OUT_OF_PAGES})
"""Elements that tell what a page is about from what surrounds it."""
_ANY_LANDMARK: Final = re.compile(rf"<(?:{'|'.join(sorted(_LANDMARKS))})[\s/>]", re.IGNORECASE)
_MOST_LANDMARKS: Final = 10_000
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_INLINE_NAMES: Final = (
    "a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp small span "
    "strike strong sub sup time tt u var wbr"
)
_INLINE: Final = frozenset(_INLINE_NAMES.split())
_NOT_IN_TABLES: Final = frozenset({"table", "pre", "h1", "h2", "h3"})
"""A table that contains one of these lays out a page."""
_END_OF_UNPARSED: Final = {name: re.compile(rf"</{name}(?=[\s/>]|\Z)", re.IGNORECASE) for name in _UNPARSED}
_WHITESPACE: Final = re.compile(r"\s+")


def split_html(text: str, fallback_title: str) -> Split:
    """Split the visible text of a page: of what it is about, or all of it if nothing remains without navigation."""
    landmarks = _survey(text)
    parts = _split(partial(_content, text, landmarks), fallback_title) if landmarks else None
    return parts if parts and parts.chunks else _split(partial(_tokens, text), fallback_title)


def _split(tokens: Callable[[], Iterator[_Token]], fallback_title: str) -> Split:
    walk = _PageWalk(_data_tables(tokens()))
    for token in tokens():
        walk.read(token)
    walk.end()
    return Split(walk.title or walk.first_heading or fallback_title, gather(walk.blocks))


@dataclass(frozen=True, slots=True)
class _Token:
    """A tag, or a text, which has no name. An element that is not parsed is one token with its content."""

    name: str = ""
    text: str = ""
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class _Landmarks:
    """The numbers of the landmarks that have an end, and the element that holds the page's content, if any."""

    closed: frozenset[int]
    preferred: str


@dataclass(slots=True)
class _Table:
    """A table that is being read."""

    rows: list[list[list[str]]] = field(default_factory=list)
    caption: list[str] = field(default_factory=list)

    def add_cell(self) -> list[str]:
        """Add a cell and return its words. A cell outside of a row begins one."""
        if not self.rows:
            self.rows.append([])
        self.rows[-1].append([])
        return self.rows[-1][-1]


class _PageWalk:
    """A walk over a page's tokens."""

    def __init__(self, data_tables: frozenset[int]) -> None:
        self.blocks: list[Block] = []
        self.title = ""
        self.first_heading = ""
        self._path: list[tuple[int, str]] = []
        self._data_tables = data_tables
        self._tables_begun = 0
        self._words: list[str] = []
        self._heading: int | None = None
        """The level of the heading that is being read, with `_words`."""
        self._code: list[str] | None = None
        self._table: _Table | None = None
        self._cell: list[str] = []
        """The words of the table's cell or caption."""

    def read(self, token: _Token) -> None:
        """Read one token."""
        if not token.name:
            self._target().append(token.text)
        elif token.name == "title":
            self.title = self.title or _normalize(token.text)
        elif self._table is not None:
            self._read_in_table(self._table, token)
        elif self._code is not None:
            self._read_in_code(self._code, token)
        else:
            self._read_in_text(token)

    def end(self) -> None:
        """End what the page leaves open."""
        self._end_code()
        self._end_block()

    def _target(self) -> list[str]:
        if self._table is not None:
            return self._cell
        return self._words if self._code is None else self._code

    def _read_in_table(self, table: _Table, token: _Token) -> None:
        if token.name == "table":
            self._end_table(table)
        elif token.name == "tr" and not token.is_end:
            table.rows.append([])
            self._cell = []
        elif token.name in ("td", "th", "caption") and token.is_end:
            self._cell = []
        elif token.name in ("td", "th"):
            self._cell = table.add_cell()
        elif token.name == "caption":
            self._cell = table.caption
        elif token.name not in _INLINE or token.name == "img":
            self._cell.append(f" {token.text} ")

    def _read_in_code(self, code: list[str], token: _Token) -> None:
        if token.name == "pre" and token.is_end:
            self._end_code()
        elif token.name == "br":
            code.append("\n")

    def _read_in_text(self, token: _Token) -> None:
        name = token.name
        if name == "img":
            self._words.append(f" {token.text} ")
        elif name in _HEADINGS:
            self._end_block()
            self._heading = None if token.is_end else _HEADINGS[name]
        elif name == "table":
            self._begin_table(token)
        elif name == "pre":
            self._end_block()
            self._code = None if token.is_end else []
        elif name in _INLINE:
            return
        elif self._heading is not None:
            self._words.append(f" {token.text} ")
        else:
            self._end_block()
            self._words += [token.text] if name in _UNPARSED else ["- "] if name == "li" and not token.is_end else []

    def _begin_table(self, token: _Token) -> None:
        self._end_block()
        if not token.is_end:
            if self._tables_begun in self._data_tables:
                self._table, self._cell = _Table(), []
            self._tables_begun += 1

    def _end_block(self) -> None:
        """End the paragraph or heading."""
        words, self._words = _normalize("".join(self._words)), []
        level, self._heading = self._heading, None
        if level is not None:
            self._add_heading(level, words)
        elif words and words != "-":
            self._add(fit(words), "prose")

    def _add_heading(self, level: int, name: str) -> None:
        self._path = [each for each in self._path if each[0] < level]
        if not name:
            return
        self._path.append((level, name))
        self.first_heading = self.first_heading or name
        self.blocks += [Block(f"{piece}\n\n", self._names(), is_heading=True) for piece in fit(f"{'#' * level} {name}")]

    def _end_code(self) -> None:
        if self._code is not None:
            text, self._code = "".join(self._code).removeprefix("\n"), None
            self._add(framed("```\n", f"{text}\n", "```\n"), "code_block")

    def _end_table(self, table: _Table) -> None:
        self._table = None
        caption = _normalize("".join(table.caption))
        self._add([f"{caption}\n"], "prose")
        rows = [[_normalize("".join(cell)).replace("|", "\\|") for cell in row] for row in table.rows]
        lines = [f"| {' | '.join(row)} |\n" for row in rows]
        if lines:
            head = lines[0] + "|" + "---|" * max(1, len(rows[0])) + "\n"
            self._add(framed(head, "".join(lines[1:]), "") if lines[1:] else fit(head), "table")

    def _add(self, pieces: list[str], kind: ContentType) -> None:
        self.blocks += [Block(f"{piece.rstrip()}\n\n", self._names(), kind) for piece in pieces if piece.strip()]

    def _names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self._path)


def _tokens(page: str) -> Iterator[_Token]:
    """Yield the tokens of a page in order, without invisible ones."""
    position, hidden, depth = 0, "", 0
    while match := _TOKEN.match(page, position):
        position, name = match.end(), (match["name"] or "").lower()
        is_end = match["slash"] == "/"
        content = ""
        if name in _END_OF_UNPARSED and not is_end:
            end = _END_OF_UNPARSED[name].search(page, position)
            content, position = page[position : end.start() if end else len(page)], end.start() if end else len(page)
        is_empty = bool(name) and match["attributes"].endswith("/")
        if hidden:
            depth += 0 if name != hidden or is_empty else -1 if is_end else 1
            hidden = hidden if depth else ""
        elif name in _HIDDEN and not is_end and not is_empty:
            hidden, depth = name, 1
        elif match["text"]:
            yield _Token(text=_unescape(match["text"]))
        elif name in _UNPARSED:
            if not is_end and name not in _INVISIBLE:
                yield _Token(name, content if name == "xmp" else _unescape(content))
        elif name == "img":
            yield _Token(name, _alternative(match["attributes"]))
        elif name:
            yield _Token(name, is_end=is_end)


def _survey(page: str) -> _Landmarks | None:
    """Find the page's landmarks that have an end. Return None if it has none, or too many."""
    if not _ANY_LANDMARK.search(page):
        return None
    began = 0
    open_: dict[str, list[int]] = {name: [] for name in _LANDMARKS}
    closed: set[int] = set()
    texts: dict[str, set[int]] = {name: set() for name in _PREFERRED}
    for token in _tokens(page):
        if not token.name:
            for name, numbers in texts.items() if token.text.strip() else ():
                numbers.update(open_[name][-1:])
        elif token.name in _LANDMARKS:
            if not token.is_end:
                open_[token.name].append(began)
                began += 1
            elif open_[token.name]:
                closed.add(open_[token.name].pop())
        if began > _MOST_LANDMARKS:
            return None
    preferred = next((name for name, numbers in texts.items() if closed & numbers and not open_[name]), "")
    return _Landmarks(frozenset(closed), preferred)


def _content(page: str, landmarks: _Landmarks) -> Iterator[_Token]:
    """Yield the tokens of the main part or the articles if there are some, without what surrounds a page's content."""
    began = 0
    open_ = dict.fromkeys(_LANDMARKS, 0)
    left_out = ""
    for token in _tokens(page):
        name = token.name
        begins = name in _LANDMARKS and not token.is_end and began in landmarks.closed
        began += name in _LANDMARKS and not token.is_end
        is_inside = open_[landmarks.preferred] > 0 if landmarks.preferred else True
        if name in _LANDMARKS and (not left_out or name == left_out):
            open_[name] = max(0, open_[name] + begins - token.is_end)
        if left_out:
            left_out = left_out if open_[left_out] else ""
        elif begins and _is_left_out(name, open_):
            left_out = name
            yield token
        elif name == "title" or is_inside:
            yield token


def _is_left_out(name: str, open_: Mapping[str, int]) -> bool:
    """Return whether an element surrounds a page's content. A section's own header and a remark aside belong to it."""
    is_own = any(open_[each] for each in _SECTIONS)
    return name in _ALWAYS_LEFT_OUT or (name in _LEFT_OUT_OF_PAGES and not is_own)


def _data_tables(tokens: Iterable[_Token]) -> frozenset[int]:
    """Return the numbers of the tables that hold data: they have an end, and no table, code or large heading inside."""
    numbers: set[int] = set()
    open_tables: list[int] = []
    begun = 0
    for token in tokens:
        if token.name in _NOT_IN_TABLES and not token.is_end and open_tables:
            numbers.discard(open_tables[-1])
        if token.name != "table":
            continue
        if not token.is_end:
            open_tables.append(begun)
            numbers.add(begun)
            begun += 1
        elif open_tables:
            open_tables.pop()
    return frozenset(numbers.difference(open_tables))


def _alternative(attributes: str) -> str:
    """Return the text of an image."""
    alt = _ALT.search(attributes)
    return _unescape(next(filter(None, alt.groups()), "")) if alt else ""


def _unescape(text: str) -> str:
    return html.unescape(_LONG_REFERENCE.sub("\ufffd", text)) if "&" in text else text


def _normalize(text: str) -> str:
    return _WHITESPACE.sub(" ", text).strip()
