"""Normalized views of a text, which reveal secrets behind escapes, encodings and invisible characters."""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from shared.rpc.whitespace import INVISIBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]")
_WIDE: Final = (
    {
        code: folded
        for first, last in ((0xFF01, 0xFF5F), (0x1D400, 0x1D800), (0x2000, 0x200B), (0x3000, 0x3001), (0xA0, 0xA1))
        for code in range(first, last)
        if len(folded := unicodedata.normalize("NFKC", chr(code))) == 1
    }
    | dict.fromkeys(map(ord, "‘’‛′"), "'")
    | dict.fromkeys(map(ord, "“”„‟″"), '"')
    | dict.fromkeys(map(ord, "‐‑‒–"), "-")
)
_JOINTS: Final = re.compile(
    r"\\\r?\n[ \t]*|([\"'`])[ \t]*+(?:\\?\r?\n[ \t]*+)?(?:[+.]|\.\.|\|\||&)?[ \t]*+(?:\\?\r?\n[ \t]*+)?\1"
)
_ESCAPES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+|\\u00[0-7][0-9A-Fa-f]|\\x[0-7][0-9A-Fa-f]|\\[nrt]|&#?\w{2,8};")
_SURROUNDINGS: Final = 250
_ENCODED: Final = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{20,8192}={0,2}(?![\w+/=-])")


@dataclass(frozen=True, slots=True)
class TextView:
    """A rewritten text, with the origin of each piece: verbatim pieces and replacements."""

    text: str
    begins: Sequence[int] = (0,)
    origins: Sequence[int] = (0,)
    verbatim: Sequence[bool] = (True,)
    source: TextView | None = None

    def origin(self, at: int) -> int:
        """Return the position in the original text of position `at` in this view."""
        piece = bisect_right(self.begins, at) - 1
        origin = self.origins[piece] + (at - self.begins[piece] if self.verbatim[piece] else 0)
        return self.source.origin(origin) if self.source else origin

    def rewritten(self, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> TextView:
        """Return a view with each match of `pattern` replaced. A replacement originates where its match begins."""
        parts, begins, origins, end, length = list[str](), [0], [0], 0, 0
        for match in pattern.finditer(self.text):
            new = replacement(match)
            parts += [self.text[end : match.start()], new]
            length += match.start() - end
            begins += [length, length + len(new)]
            origins += [match.start(), match.end()]
            length, end = length + len(new), match.end()
        if not parts:
            return self
        text = "".join([*parts, self.text[end:]])
        return TextView(text, begins, origins, [True, *[False, True] * (len(parts) // 2)], self)

    def rewritten_parts(self) -> Iterator[TextView]:
        """Yield the replacements with their surroundings. The rest has been scanned already."""
        ranges: list[list[int]] = []
        for begin, verbatim in zip(self.begins, self.verbatim, strict=True):
            if verbatim:
                continue
            if ranges and begin - _SURROUNDINGS <= ranges[-1][1]:
                ranges[-1][1] = begin + _SURROUNDINGS
            else:
                ranges.append([max(0, begin - _SURROUNDINGS), begin + _SURROUNDINGS])
        for begin, end in ranges:
            yield TextView(self.text[begin:end], origins=(begin,), source=self)


def normalized_views(text: str) -> Iterator[TextView]:
    """Yield `text` in plain letters, then views with joined string literals, decoded escapes and decoded runs."""
    plain = TextView(text if text.isascii() else text.translate(_WIDE))
    plain = plain if text.isascii() else plain.rewritten(_INVISIBLE, lambda _: "")
    yield plain
    for view in (plain.rewritten(_JOINTS, lambda _: ""), plain.rewritten(_ESCAPES, _unescape)):
        yield from view.rewritten_parts()
    yield from _decoded_views(plain)


def _unescape(escape: re.Match[str]) -> str:
    match escape[0][0]:
        case "%":
            decoded = unquote(escape[0], errors="replace")
            return escape[0] if "\ufffd" in decoded else decoded
        case "&":
            return html.unescape(escape[0])
        case _ if len(escape[0]) == 2:
            return {"n": "\n", "r": "\r", "t": "\t"}[escape[0][1]]
        case _:
            return chr(int(escape[0][2:], 16))


def _decoded_views(view: TextView) -> Iterator[TextView]:
    for match in _ENCODED.finditer(view.text):
        for decode in (_from_base64, bytes.fromhex):
            decoded = _decoded_text(decode, match[0])
            if decoded:
                origins = [match.start() + len(match[0]) * at // len(decoded) for at in range(len(decoded) + 1)]
                yield TextView(decoded, range(len(origins)), origins, [False] * len(origins), view)


def _from_base64(run: str) -> bytes:
    core = run.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(core + "=" * (-len(core) % 4))


def _decoded_text(decode: Callable[[str], bytes], run: str) -> str:
    """Return the decoded text, or an empty string if it is not printable text."""
    try:
        decoded = decode(run)
    except (binascii.Error, ValueError):
        return ""
    text = decoded.decode("ascii", "replace")
    return text if all(char.isprintable() or char in "\r\n\t" for char in text) and "\ufffd" not in text else ""
