"""Splitting of Markdown. Each block consists of unchanged source lines, so that no word is lost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import table
from markdown_it.tree import SyntaxTreeNode

from shared.search.splitting.chunks import Block, Split, framed, gather
from shared.search.splitting.sizes import LIMIT, cut, fit, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.rules_block import StateBlock

    from shared.search.passages import ContentType

_CONTAINERS: Final = ("bullet_list", "ordered_list", "list_item", "blockquote")
_CODE: Final = ("fence", "code_block")
# Front matter begins with a field or is empty. Otherwise the first line is a rule, as between slides.
_FRONT_MATTER: Final = re.compile(
    r"---[ \t]*\n(?P<fields>(?:[\w\"'][^\n:]*:(?:[ \t][^\n]*)?\n.*?)?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TITLE_FIELD: Final = re.compile(r"^title:(?P<title>.*\S.*)$", re.MULTILINE)
_MARKED_UP: Final = re.compile(r"[*_`\[\]<>&!\\]")
_DELIMITER_ROW: Final = re.compile(r"[\s>|:-]*")


def split_markdown(text: str, fallback_title: str) -> Split:
    """Split `text` at its headings. Code blocks and tables stay whole up to the size limit."""
    front = _FRONT_MATTER.match(text)
    front_matter = front[0] if front else ""
    walk = _MarkdownWalk(text[len(front_matter) :])
    blocks = [Block(piece) for piece in fit(front_matter)] if front_matter else []
    blocks += walk.blocks()
    title_field = _TITLE_FIELD.search(front["fields"]) if front else None
    title = title_field["title"].strip(" \t").strip("'\"") if title_field else walk.title
    return Split(title or fallback_title, gather(blocks))


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading outside of lists and quotations: its first line from 0, the line after it, its level and text."""

    line: int
    end: int
    level: int
    name: str
    underlined: bool


def headings(text: str) -> list[Heading]:
    """Return the headings of a Markdown text. Those of code, lists, quotations and front matter are none."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(text)
    skipped = front[0].count("\n") if front else 0
    tokens = _block_parser().parse(text[front.end() :] if front else text)
    return [
        Heading(
            skipped + token.map[0],
            skipped + token.map[1],
            int(token.tag[1]),
            heading_text(content.content),
            not token.markup.startswith("#"),
        )
        for token, content in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]


@dataclass(frozen=True, slots=True)
class _Region:
    """The lines from `start` to `end`, and their syntax node, if any."""

    start: int
    end: int
    node: SyntaxTreeNode | None


class _MarkdownWalk:
    def __init__(self, text: str) -> None:
        self._lines = re.findall(r"[^\n]*\n|[^\n]+", text)
        self._root = SyntaxTreeNode(_block_parser().parse(text))
        self._path: list[tuple[int, str]] = []
        self.title = ""

    def blocks(self) -> Iterator[Block]:
        """Yield every line of the text in blocks, in order."""
        under_heading = False
        for region in self._regions(self._root.children, 0, len(self._lines)):
            is_heading = region.node is not None and region.node.type == "heading"
            if region.node is not None and is_heading:
                self._enter(region.node)
            path = tuple(name for _, name in self._path)
            for text, kind in self._pieces(region):
                under_heading = is_heading or (under_heading and not text.strip())
                yield Block(text, path, kind, under_heading)

    def _enter(self, heading: SyntaxTreeNode) -> None:
        level = int(heading.tag[1])
        name = heading_text(heading.children[0].content)
        self._path = [each for each in self._path if each[0] < level]
        if name:
            self._path.append((level, name))
        if level == 1 and not self.title:
            self.title = name

    def _regions(self, nodes: Sequence[SyntaxTreeNode], start: int, end: int) -> Iterator[_Region]:
        """Yield the lines of `nodes`, and the lines between them that belong to no node, such as link definitions."""
        position = start
        for node in nodes:
            if node.map is None:
                continue
            first, last = max(position, node.map[0]), min(end, node.map[1])
            if first > position:
                yield _Region(position, first, None)
            if last > first:
                yield _Region(first, last, node)
                position = last
            else:
                position = first
        if position < end:
            yield _Region(position, end, None)

    def _pieces(self, region: _Region) -> Iterator[tuple[str, ContentType]]:
        text = "".join(self._lines[region.start : region.end])
        node = region.node
        kind = _content_type(node)
        if size(text) <= LIMIT:
            yield text, kind
        elif node is not None and node.type in _CONTAINERS:
            for inner in self._regions(node.children, region.start, region.end):
                yield from self._pieces(inner)
        else:
            yield from ((piece, kind) for piece in self._cut(node, region, text))

    def _cut(self, node: SyntaxTreeNode | None, region: _Region, text: str) -> list[str]:
        lines = self._lines[region.start : region.end]
        is_table = node is not None and node.type == "table" and len(lines) > 2
        if is_table and "-" in lines[1] and _DELIMITER_ROW.fullmatch(lines[1]):
            return framed("".join(lines[:2]), "".join(lines[2:]), "")
        if node is not None and node.type == "fence" and len(lines) > 2:
            closed = lines[-1].strip(" >\t\n").startswith(node.markup) and not lines[-1].strip(
                " >\t\n" + node.markup[0]
            )
            body = lines[1:-1] if closed else lines[1:]
            return framed(lines[0], "".join(body), lines[-1] if closed else "")
        return cut(text)


@cache
def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - the parser's signature
    """Parse a table as one node. The parser's own rule makes three tokens of each cell, which may be one character."""
    if not table(state, start, end, True):  # checks the header
        return False
    if silent:
        return True
    outer, state.parentType = state.parentType, "table"
    endings = state.md.block.ruler.getRules("blockquote")
    line = start + 2
    while (
        line < end
        and state.sCount[line] >= state.blkIndent
        and not state.isEmpty(line)
        and not state.is_code_block(line)
        and not any(rule(state, line, end, True) for rule in endings)
    ):
        line += 1
    state.parentType = outer
    state.push("table_open", "table", 1).map = [start, line]
    state.push("table_close", "table", -1)
    state.line = line
    return True


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def heading_text(markup: str) -> str:
    """Return the text of a heading without emphasis, links and code marks."""
    if not _MARKED_UP.search(markup):
        return " ".join(markup.split())
    children = [child for token in _inline_parser().parseInline(markup) for child in token.children or ()]
    words = (" " if child.type in ("softbreak", "hardbreak") else child.content for child in children)
    return " ".join("".join(words).split())


def _content_type(node: SyntaxTreeNode | None) -> ContentType:
    if node is not None and node.type in _CODE:
        return "code_block"
    return "table" if node is not None and node.type == "table" else "prose"
