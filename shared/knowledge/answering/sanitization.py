"""What a model's words may not hold: citations of nothing, addresses that no source gives, images, the fence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Some servers open them in the prompt, so that an answer only closes them.
_THOUGHTS: Final = re.compile(
    r"\A(?:\s*<think>.*?(?:</think>|\Z)|(?:(?!</?think>).)*^</think>[ \t]*$)", re.DOTALL | re.MULTILINE
)
_CODE: Final = re.compile(r"((?m:^)[ \t]*```.*?(?:```|\Z)|(?<!\\)```.*?```|(?<!\\)`[^`\n]*`)", re.DOTALL)
# Nothing in it can match in two ways: a hostile text must not make it slow.
_TARGET: Final = r"[^\s()<>]{0,500}(?:\([^\s()<>]{0,100}\)[^\s()<>]{0,100}){0,3}"
# Without an attribute, some are as likely to be names of what is to be put in their place.
_TAG: Final = (
    r"<(?:(?:img|iframe|script|object|embed|link|meta|style)\b"
    r"|(?:image|svg|picture|source|video|audio|track|frame|base|input)\b(?=[^>\n]{0,500}=))"
)
_LOADS: Final = re.compile(_TAG, re.IGNORECASE)
_MARKS: Final = re.compile(
    rf"""
    [ \t]{{0,8}}[\[【]\^?(?P<cited>\d{{1,3}}(?:[ ]?[,;、–-][ ]?\d{{1,3}}){{0,20}})(?:†[^\]】\n]{{0,80}})?[\]】]
      (?:\(<?{_TARGET}>?\))?
    |!\[(?P<image>[^\]\n]{{0,300}})\]\([ ]?<?{_TARGET}>?(?:[ ][^()\n]{{0,200}})?\)
    |(?P<bang>!)(?=[\[【])
    |\[(?P<text>[^\]\n]{{1,300}})\]\(<?(?P<target>{_TARGET})>?(?:[ ][^()\n]{{0,200}})?\)
    |{_TAG}[^>\n]{{0,500}}>?
    |(?P<address>\b(?:https?://|www\.)[^\s<>()\[\]"'`，。；！？）】]{{1,2000}})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDINGS: Final = ".,;:!?…*_~"
_SAFE: Final = ("http://", "https://")
_GIVEN: Final = (*_SAFE, "www.")
_PASSES: Final = 20
"""What is taken out may leave something that is to be taken out too, as often as a hostile text wants."""
_LEFT_OUT: Final = "…"
_RANGE: Final = re.compile(r"(\d+) *[–-] *(\d+)")
_NUMBER: Final = re.compile(r"\d+")
_GAPS: Final = re.compile(r"[ \t]+")
_CITATION: Final = re.compile(r"\[(\d{1,3})\]")


def sanitize_answer(words: str, fence: str, shown: int, texts: Sequence[str]) -> str:
    """A model's `words`, in which numbers up to `shown` may be cited, and addresses that stand in `texts`."""
    lines = _THOUGHTS.sub("", words).split("\n")
    text = "\n".join(line for line in lines if fence not in line)
    for _ in range(_PASSES):
        before, text = text, _cleaned_once(text, shown, texts)
        if text == before:
            return text.strip()
    return ""


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """`text`, changed but for what is code in it."""
    return "".join(part if at % 2 else change(part) for at, part in enumerate(_CODE.split(text)))


def cited_numbers(text: str) -> list[int]:
    """The numbers of the sources that `text` cites, in their order, each once."""
    numbers: dict[int, None] = {}
    for at, part in enumerate(_CODE.split(text)):
        if at % 2 == 0:
            numbers |= dict.fromkeys(int(number) for number in _CITATION.findall(part))
    return list(numbers)


def without_marks(text: str) -> str:
    """`text` as it can be quoted: no image, no number in brackets that would pass for a citation."""
    return _GAPS.sub(" ", _MARKS.sub(_quotable, text))


def _cleaned_once(text: str, shown: int, texts: Sequence[str]) -> str:
    parts = _CODE.split(text)
    return "".join(
        part if at % 2 and _is_harmless(part, texts) else _MARKS.sub(lambda mark: _allowed(mark, shown, texts), part)
        for at, part in enumerate(parts)
    )


def _is_harmless(code: str, texts: Sequence[str]) -> bool:
    """Whether code is no picture, or stands in a source: what is code to us may be none to whoever shows it."""
    if not ("![" in code and "](" in code) and not _LOADS.search(code):
        return True
    written = code.partition("\n")[2] if code.lstrip().startswith("```") else code
    inside = written.strip("` \t\n")
    return any(inside and inside in text for text in texts)


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
    return mark["image"] or _parted(mark)


def _quotable(mark: re.Match[str]) -> str:
    if mark["text"] is not None:
        return mark[0] if mark["target"].lower().startswith(_SAFE) else mark["text"]
    return mark["address"] or _parted(mark)


def _parted(mark: re.Match[str]) -> str:
    """An exclamation mark that makes no picture of what follows it."""
    return "! " if mark["bang"] else ""


def _is_given(address: str, texts: Sequence[str]) -> bool:
    return address.lower().startswith(_GIVEN) and any(address in text for text in texts)


def _numbers(cited_as: str) -> list[int]:
    spread = _RANGE.sub(lambda pair: _spread(int(pair[1]), int(pair[2])), cited_as)
    return list(dict.fromkeys(int(number) for number in _NUMBER.findall(spread)))


def _spread(first: int, last: int) -> str:
    return ",".join(map(str, range(first, min(last, first + 99) + 1)))
