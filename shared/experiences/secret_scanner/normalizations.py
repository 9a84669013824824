"""The ways a text can be read: as it stands, and without what would hide a secret in it."""

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

from shared.experiences.secret_scanner.whitespace import INVISIBLE

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
    r"\\\r?\n[ \t]*|([\"'`])[ \t]*(?:\\?\r?\n[ \t]*)?(?:[+.]|\.\.|\|\||&)?[ \t]*(?:\\?\r?\n[ \t]*)?\1"
)
_ESCAPES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+|\\u00[0-7][0-9A-Fa-f]|\\x[0-7][0-9A-Fa-f]|\\[nrt]|&#?\w{2,8};")
_NEAR: Final = 250
_ENCODED: Final = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{20,8192}={0,2}(?![\w+/=-])")


@dataclass(frozen=True, slots=True)
class TextView:
    """A reading of a text: pieces of the text as they stand, and pieces that replace others."""

    text: str
    begins: Sequence[int] = (0,)
    origins: Sequence[int] = (0,)
    as_it_stands: Sequence[bool] = (True,)
    read: TextView | None = None

    def origin(self, at: int) -> int:
        """Where in the text stood what stands here at `at`."""
        piece = bisect_right(self.begins, at) - 1
        origin = self.origins[piece] + (at - self.begins[piece] if self.as_it_stands[piece] else 0)
        return self.read.origin(origin) if self.read else origin

    def rewritten(self, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> TextView:
        """This view with each match of `pattern` replaced; what replaces it stood where the match began."""
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
        """What is not as it stands, with what is near: the rest has been read already."""
        near: list[list[int]] = []
        for begin, as_it_stands in zip(self.begins, self.as_it_stands, strict=True):
            if as_it_stands:
                continue
            if near and begin - _NEAR <= near[-1][1]:
                near[-1][1] = begin + _NEAR
            else:
                near.append([max(0, begin - _NEAR), begin + _NEAR])
        for begin, end in near:
            yield TextView(self.text[begin:end], origins=(begin,), read=self)


def normalized_views(text: str) -> Iterator[TextView]:
    """`text` in plain letters; then joined where it was cut, and decoded where it was escaped or encoded."""
    plain = TextView(text if text.isascii() else text.translate(_WIDE))
    plain = plain if text.isascii() else plain.rewritten(_INVISIBLE, lambda _: "")
    yield plain
    for revealed in (plain.rewritten(_JOINTS, lambda _: ""), plain.rewritten(_ESCAPES, _unescaped)):
        yield from revealed.rewritten_parts()
    yield from _decoded(plain)


def _unescaped(escape: re.Match[str]) -> str:
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


def _decoded(view: TextView) -> Iterator[TextView]:
    for match in _ENCODED.finditer(view.text):
        for decode in (_from_base64, _from_hex):
            decoded = decode(match[0])
            if decoded:
                stood = [match.start() + len(match[0]) * at // len(decoded) for at in range(len(decoded) + 1)]
                yield TextView(decoded, range(len(stood)), stood, [False] * len(stood), view)


def _from_base64(run: str) -> str:
    core = run.rstrip("=").replace("-", "+").replace("_", "/")
    return _text_of(lambda: base64.b64decode(core + "=" * (-len(core) % 4)))


def _from_hex(run: str) -> str:
    return _text_of(lambda: bytes.fromhex(run))


def _text_of(decode: Callable[[], bytes]) -> str:
    """What was encoded, where that is text."""
    try:
        decoded = decode()
    except (binascii.Error, ValueError):
        return ""
    text = decoded.decode("ascii", "replace")
    return text if all(char.isprintable() or char in "\r\n\t" for char in text) and "\ufffd" not in text else ""
