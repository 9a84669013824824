"""Sanitization of a model's answer: citations, addresses, images, the prompt's fence and control characters."""

import re
from collections.abc import Callable, Sequence
from typing import Final

# Escape sequences of terminals, control characters but tab and newline, and marks that reverse the reading order.
_CONTROLS: Final = re.compile(
    r"\x1b\[[0-?]{0,30}[ -/]{0,5}[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
# Some servers open the tag in the prompt, so that the answer only closes it.
_THINKING: Final = re.compile(
    r"\A(?:\s*<think>.*?(?:</think>|\Z)|(?:(?!</?think>).)*^</think>[ \t]*$)", re.DOTALL | re.MULTILINE
)
_CODE: Final = re.compile(r"((?m:^)[ \t]*```.*?(?:```|\Z)|(?<!\\)```.*?```|(?<!\\)`[^`\n]*`)", re.DOTALL)
# Each part matches in one way only: a hostile text must not cause backtracking.
_TARGET: Final = r"[^\s()<>]{0,500}(?:\([^\s()<>]{0,100}\)[^\s()<>]{0,100}){0,3}"
# Without an attribute, some of these are as likely to be placeholder names.
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
_ADDRESS_STARTS: Final = (*_SAFE, "www.")
_MAX_PASSES: Final = 20
"""Removing a mark can create another one, as often as a hostile text wants."""
_ELLIPSIS: Final = "…"
_RANGE: Final = re.compile(r"(\d+) *[–-] *(\d+)")
_NUMBER: Final = re.compile(r"\d+")
_GAPS: Final = re.compile(r"[ \t]+")
_CITATION: Final = re.compile(r"\[(\d{1,3})\]")


def sanitize_answer(answer: str, fence: str, shown: int, texts: Sequence[str]) -> str:
    """Sanitize a model's answer. It may cite numbers up to `shown` and addresses that occur in `texts`."""
    lines = _THINKING.sub("", _CONTROLS.sub("", answer)).split("\n")
    text = "\n".join(line for line in lines if fence not in line)
    for _ in range(_MAX_PASSES):
        before, text = text, _sanitize_once(text, shown, texts)
        if text == before:
            return text.strip()
    return ""


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to everything in `text` except code."""
    return "".join(part if index % 2 else change(part) for index, part in enumerate(_CODE.split(text)))


def cited_numbers(text: str) -> list[int]:
    """Return the distinct source numbers that `text` cites, in order."""
    numbers: dict[int, None] = {}
    for index, part in enumerate(_CODE.split(text)):
        if index % 2 == 0:
            numbers |= dict.fromkeys(int(number) for number in _CITATION.findall(part))
    return list(numbers)


def remove_marks(text: str) -> str:
    """Return `text` without images and without numbers in brackets that would pass for citations."""
    return _GAPS.sub(" ", _MARKS.sub(_quotable_mark, text))


def _sanitize_once(text: str, shown: int, texts: Sequence[str]) -> str:
    parts = _CODE.split(text)
    return "".join(
        part
        if index % 2 and _is_harmless(part, texts)
        else _MARKS.sub(lambda mark: _sanitize_mark(mark, shown, texts), part)
        for index, part in enumerate(parts)
    )


def _is_harmless(code: str, texts: Sequence[str]) -> bool:
    """Return True if code embeds no image or occurs in a source: another renderer may not treat it as code."""
    if not ("![" in code and "](" in code) and not _LOADS.search(code):
        return True
    body = code.partition("\n")[2] if code.lstrip().startswith("```") else code
    inside = body.strip("` \t\n")
    return any(inside and inside in text for text in texts)


def _sanitize_mark(mark: re.Match[str], shown: int, texts: Sequence[str]) -> str:
    if mark["cited"] is not None:
        numbers = [number for number in _numbers(mark["cited"]) if 1 <= number <= shown]
        gap = mark[0][: len(mark[0]) - len(mark[0].lstrip(" \t"))]
        return gap + "".join(f"[{number}]" for number in numbers) if numbers else ""
    if mark["text"] is not None:
        return mark[0] if _is_in_sources(mark["target"], texts) else mark["text"]
    if mark["address"] is not None:
        address = mark["address"].rstrip(_ENDINGS)
        return mark[0] if _is_in_sources(address, texts) else _ELLIPSIS + mark["address"][len(address) :]
    return mark["image"] or _separate_bang(mark)


def _quotable_mark(mark: re.Match[str]) -> str:
    if mark["text"] is not None:
        return mark[0] if mark["target"].lower().startswith(_SAFE) else mark["text"]
    return mark["address"] or _separate_bang(mark)


def _separate_bang(mark: re.Match[str]) -> str:
    """Return an exclamation mark that does not turn the following link into an image."""
    return "! " if mark["bang"] else ""


def _is_in_sources(address: str, texts: Sequence[str]) -> bool:
    return address.lower().startswith(_ADDRESS_STARTS) and any(address in text for text in texts)


def _numbers(citation: str) -> list[int]:
    def expand(pair: re.Match[str]) -> str:
        first, last = int(pair[1]), int(pair[2])
        return ",".join(map(str, range(first, min(last, first + 99) + 1)))

    return list(dict.fromkeys(int(number) for number in _NUMBER.findall(_RANGE.sub(expand, citation))))
