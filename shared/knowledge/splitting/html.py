"""Splitting of HTML by its headings, paragraphs, code and tables, without invisible elements."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from selectolax.lexbor import LexborHTMLParser

from shared.knowledge.splitting.chunks import Block, Split, framed, gather
from shared.knowledge.splitting.sizes import fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborNode

    from shared.knowledge.passages import ContentType

_INVISIBLE: Final = frozenset({"head", "script", "style", "template", "noscript", "svg", "iframe", "object"})
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_INLINE_NAMES: Final = (
    "a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp small span "
    "strike strong sub sup time tt u var wbr"
)
_INLINE: Final = frozenset(_INLINE_NAMES.split())
_TAG: Final = re.compile(r"<(/?)(\w+)")
_OPTIONAL_END_NAMES: Final = (
    "area base br col dd dt embed hr img input li link meta option p param source tbody td tfoot th thead tr track wbr"
)
_OPTIONAL_END: Final = frozenset(_OPTIONAL_END_NAMES.split())
_MAX_DEPTH: Final = 10_000
_WHITESPACE: Final = re.compile(r"\s+")


def split_html(text: str, fallback_title: str) -> Split:
    """Split the visible text of a page. Raise ValueError if it is nested so deeply that parsing would take hours."""
    _require_shallow(text)
    tree = LexborHTMLParser(text)
    title_element = tree.css_first("title")
    walk = _PageWalk()
    if tree.root is not None:
        walk.walk(tree.root)
    title = _normalize(title_element.text()) if title_element is not None else ""
    return Split(title or walk.first_heading or fallback_title, gather(walk.blocks))


class _PageWalk:
    """A walk over a page without recursion, because pages may be nested to any depth."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.first_heading = ""
        self._path: list[tuple[int, str]] = []
        self._words: list[str] = []

    def walk(self, root: LexborNode) -> None:
        """Read everything below `root` in document order."""
        stack: list[LexborNode | None] = [root]
        while stack:
            node = stack.pop()
            if node is None:  # the end of a block
                self._end_paragraph()
                continue
            name = node.tag or ""
            if name == "-text":
                self._words.append(node.text_content or "")
            elif not self._read_element(name, node):
                if name not in _INLINE:
                    self._end_paragraph()
                    stack.append(None)
                    if name == "li":
                        self._words.append("- ")
                stack += reversed(list(node.iter(include_text=True)))

    def _read_element(self, name: str, node: LexborNode) -> bool:
        """Read an element without walking its children. Return False if its children must be walked."""
        if name in _INVISIBLE:
            return True
        if name == "img":
            self._words.append(f" {node.attributes.get('alt') or ''} ")
        elif name in _HEADINGS:
            self._heading(_HEADINGS[name], _normalize(node.text(separator=" ")))
        elif name == "pre":
            self._end_paragraph()
            self._add(framed("```\n", f"{node.text()}\n", "```\n"), "code_block")
        elif name == "table" and node.css_first("table table, table pre, table h1, table h2, table h3") is None:
            self._end_paragraph()
            self._table(node)
        else:
            return False
        return True

    def _heading(self, level: int, name: str) -> None:
        self._end_paragraph()
        self._path = [each for each in self._path if each[0] < level]
        if not name:
            return
        self._path.append((level, name))
        self.first_heading = self.first_heading or name
        self.blocks += [Block(f"{piece}\n\n", self._names(), is_heading=True) for piece in fit(f"{'#' * level} {name}")]

    def _table(self, node: LexborNode) -> None:
        rows = []
        for row in node.css("tr"):
            cells = [_normalize(cell.text(separator=" ")).replace("|", "\\|") for cell in row.css("td, th")]
            rows.append(f"| {' | '.join(cells)} |\n")
        caption = node.css_first("caption")
        if caption is not None:
            self._add([_normalize(caption.text(separator=" ")) + "\n"], "prose")
        if rows:
            head = rows[0] + "|" + "---|" * max(1, len(node.css_first("tr").css("td, th"))) + "\n"  # type: ignore[union-attr]
            self._add(framed(head, "".join(rows[1:]), "") if rows[1:] else fit(head), "table")

    def _end_paragraph(self) -> None:
        words, self._words = _normalize("".join(self._words)), []
        if words and words != "-":
            self._add(fit(words), "prose")

    def _add(self, pieces: Iterator[str] | list[str], kind: ContentType) -> None:
        self.blocks += [Block(f"{piece.rstrip()}\n\n", self._names(), kind) for piece in pieces if piece.strip()]

    def _names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self._path)


def _require_shallow(page: str) -> None:
    """Refuse too many unclosed elements: parsing time grows with the square of their depth."""
    depth: Counter[str] = Counter()
    for slash, name in _TAG.findall(page):
        depth[name.lower()] += -1 if slash else 1
    if any(count > _MAX_DEPTH for name, count in depth.items() if name not in _OPTIONAL_END):
        raise ValueError("its elements are nested too deeply")


def _normalize(text: str) -> str:
    return _WHITESPACE.sub(" ", text).strip()
