"""What a model's words may not hold: citations of nothing, addresses that no source gives, images, the fence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_THOUGHTS: Final = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_CODE: Final = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
# Nothing in it can match in two ways: a hostile text must not make it slow.
_TARGET: Final = r"[^\s()<>]{0,500}(?:\([^\s()<>]{0,100}\)[^\s()<>]{0,100}){0,3}"
_MARKS: Final = re.compile(
    rf"""
    [ \t]{{0,8}}[\[【]\^?(?P<cited>\d{{1,3}}(?:[ ]?[,;、–-][ ]?\d{{1,3}}){{0,20}})(?:†[^\]】\n]{{0,80}})?[\]】]
      (?:\(<?{_TARGET}>?\))?
    |!\[(?P<image>[^\]\n]{{0,300}})\](?:\(<?{_TARGET}>?(?:[ ][^()\n]{{0,200}})?\)|\[[^\]\n]{{0,100}}\])?
    |\[(?P<text>[^\]\n]{{1,300}})\]\(<?(?P<target>{_TARGET})>?(?:[ ][^()\n]{{0,200}})?\)
    |<(?:img|iframe|script|object|embed|link|meta)\b[^>\n]{{0,500}}>?
    |(?P<address>\bhttps?://[^\s<>()\[\]"'`，。；！？）】]{{1,2000}})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDINGS: Final = ".,;:!?…*_~"
_SAFE: Final = ("http://", "https://")
_LEFT_OUT: Final = "…"
_RANGE: Final = re.compile(r"(\d+) *[–-] *(\d+)")
_NUMBER: Final = re.compile(r"\d+")
_GAPS: Final = re.compile(r"[ \t]+")
_CITATION: Final = re.compile(r"\[(\d{1,3})\]")


def cleaned(words: str, fence: str, shown: int, texts: Sequence[str]) -> str:
    """A model's `words`, in which numbers up to `shown` may be cited, and addresses that stand in `texts`."""
    lines = _THOUGHTS.sub("", words).split("\n")
    text = "\n".join(line for line in lines if fence not in line)
    return outside_code(text, lambda prose: _MARKS.sub(lambda mark: _allowed(mark, shown, texts), prose)).strip()


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """`text`, changed but for what is code in it."""
    return "".join(part if at % 2 else change(part) for at, part in enumerate(_CODE.split(text)))


def cited(text: str) -> list[int]:
    """The numbers of the sources that `text` cites, in their order, each once."""
    numbers: dict[int, None] = {}
    for at, part in enumerate(_CODE.split(text)):
        if at % 2 == 0:
            numbers |= dict.fromkeys(int(number) for number in _CITATION.findall(part))
    return list(numbers)


def without_marks(text: str) -> str:
    """`text` as it can be quoted: no image, no number in brackets that would pass for a citation."""
    return _GAPS.sub(" ", _MARKS.sub(_quotable, text))


def _allowed(mark: re.Match[str], shown: int, texts: Sequence[str]) -> str:
    if mark["cited"] is not None:
        numbers = [number for number in _numbers(mark["cited"]) if 1 <= number <= shown]
        gap = mark[0][: len(mark[0]) - len(mark[0].lstrip(" \t"))]
        return gap + "".join(f"[{number}]" for number in numbers) if numbers else ""
    if mark["text"] is not None:
        return mark[0] if _is_given(mark["target"], texts) else mark["text"]
    if mark["address"] is not None:
        address = mark["address"].rstrip(_ENDINGS)
        return mark[0] if _is_given(address, texts) else _LEFT_OUT + mark["address"][len(address) :]
    return mark["image"] or ""


def _quotable(mark: re.Match[str]) -> str:
    if mark["text"] is not None:
        return mark[0] if mark["target"].lower().startswith(_SAFE) else mark["text"]
    return mark["address"] or ""


def _is_given(address: str, texts: Sequence[str]) -> bool:
    return address.lower().startswith(_SAFE) and any(address in text for text in texts)


def _numbers(cited_as: str) -> list[int]:
    spread = _RANGE.sub(lambda pair: _spread(int(pair[1]), int(pair[2])), cited_as)
    return list(dict.fromkeys(int(number) for number in _NUMBER.findall(spread)))


def _spread(first: int, last: int) -> str:
    return ",".join(map(str, range(first, min(last, first + 99) + 1)))
