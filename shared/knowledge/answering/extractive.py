"""The best sentences of the sources, for an answer that no language model writes."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.knowledge.answering.language_detection import detect_language
from shared.knowledge.answering.sanitization import outside_code, without_marks
from shared.knowledge.tokenizer import tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shared.knowledge.answering.models import AnswerSource

_SOURCES: Final = 8
_QUOTED: Final = 5
_CHARACTERS: Final = 900
_LONGEST: Final = 500
_OF_ITS_SOURCE: Final = 0.6
"""What the rank of its source counts beside a sentence's own words: steps and lists say their subject once, above."""
_FROM_ABOVE: Final = 0.8
_OF_THE_LANGUAGE: Final = 0.5
_AS_GOOD: Final = 0.6
_FENCED: Final = re.compile(r"(?ms)^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[^\n]*$|\Z)")
_TABLE_LINE: Final = re.compile(r"[ \t]*\|")
_HEADING: Final = re.compile(r"[ \t]{0,3}#{1,6}([ \t]|$)|[ \t]*(=+|-+|\*+|_+)[ \t]*$")
_ITEM: Final = re.compile(r"[ \t]*(?:>[ \t]?)*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_QUOTE: Final = re.compile(r"[ \t]*>[ \t]?")
_END: Final = re.compile(r"(?<=[.!?…])[\"'”’)]{0,2}\s+(?=[^\sa-zà-öø-ÿ])|(?<=[。！？；])")
_NO_GAP: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence of the source of this number, or a block of it that is to stay whole."""

    number: int
    text: str
    is_block: bool = False
    above: str = ""
    """The line that introduces it, such as what a list is of."""


def best_sentences(question: str, sources: Sequence[AnswerSource], language: str) -> list[Quotation]:
    """The sentences that answer `question` best, in the order of their sources, of which there must be one.

    Those in `language` come before others.
    """
    found = [
        (quotation, source.score)
        for number, source in enumerate(sources[:_SOURCES], start=1)
        for quotation in _quotations(number, source)
    ]
    if not found:
        # Nothing but headings, or lines that introduce nothing.
        return [Quotation(1, _cut(" ".join(sources[0].text.split())))]
    forms = [_forms(quotation.text) for quotation, _ in found]
    forms_above = [_forms(quotation.above) for quotation, _ in found]
    rarity = _rarity([*forms, *forms_above])
    best = max(score for _, score in found) or 1.0
    values = [
        max(_overlap(question, held, rarity), _FROM_ABOVE * _overlap(question, held | above, rarity))
        + _OF_ITS_SOURCE * score / best
        + (_OF_THE_LANGUAGE if language and detect_language(quotation.text) == language else 0.0)
        for (quotation, score), held, above in zip(found, forms, forms_above, strict=True)
    ]
    chosen: set[int] = set()
    size = 0
    seen = set()
    for at in sorted(range(len(found)), key=lambda at: (-values[at], at)):
        text = found[at][0].text
        if len(chosen) == _QUOTED or values[at] < max(values) * _AS_GOOD:
            break
        if text in seen or (chosen and size + len(text) > _CHARACTERS):
            continue
        seen.add(text)
        chosen.add(at)
        size += len(text)
    return [found[at][0] for at in sorted(chosen)]


def _quotations(number: int, source: AnswerSource) -> Iterator[Quotation]:
    if not source.is_prose:
        yield Quotation(number, source.snippet.strip("\n"), is_block=True)
        return
    at = 0
    for block in _FENCED.finditer(source.snippet):
        yield from _sentences(number, source.snippet[at : block.start()])
        yield Quotation(number, block[0].strip("\n"), is_block=True)
        at = block.end()
    yield from _sentences(number, source.snippet[at:])


def _sentences(number: int, text: str) -> Iterator[Quotation]:
    above = ""
    for paragraph, is_item in _paragraphs(text):
        if not is_item:
            above = ""
        sentences = [quoted for each in _END.split(paragraph) if (quoted := outside_code(each, without_marks).strip())]
        for sentence in sentences:
            if sentence.endswith((":", "：")):
                above = sentence
            elif any(character.isalnum() for character in sentence):
                yield Quotation(number, _cut(sentence), above=above)


def _cut(sentence: str) -> str:
    return f"{sentence[:_LONGEST].rstrip()}…" if len(sentence) > _LONGEST else sentence


def _paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """What stands together, without its marks: the lines of a paragraph, or of an item of a list; but no heading."""
    gathered, is_item = "", False
    for line in text.split("\n"):
        item = _ITEM.match(line)
        ends = not line.strip() or _HEADING.match(line) or _TABLE_LINE.match(line)
        if (item or ends) and gathered:
            yield gathered, is_item
            gathered = ""
        if item:
            gathered, is_item = line[item.end() :].strip(), True
        elif not ends:
            is_item = is_item and bool(gathered)
            gathered = _joined(gathered, _QUOTE.sub("", line, count=1).strip())
    if gathered:
        yield gathered, is_item


def _joined(before: str, line: str) -> str:
    if not before or not line:
        return before + line
    gap = "" if _NO_GAP.match(before[-1]) or _NO_GAP.match(line[0]) else " "
    return f"{before}{gap}{line}"


def _forms(text: str) -> frozenset[str]:
    """The words of `text`, with and without their accents."""
    return frozenset(form for word in tokenize(text) for form in word if form)


def _rarity(forms: Sequence[frozenset[str]]) -> dict[str, float]:
    holders = Counter(form for held in forms for form in held)
    return {form: math.log(1 + len(forms) / count) for form, count in holders.items()}


def share_of_words(question: str, text: str) -> float:
    """The share of the question's words that `text` holds, in 0-1."""
    held = _forms(text)
    return _overlap(question, held, dict.fromkeys(_asked(question), 1.0))


def _asked(question: str) -> set[str]:
    """The words of a question without their accents, which it may have been typed without."""
    return {word.twin or word.term for word in tokenize(question)}


def _overlap(question: str, held: frozenset[str], rarity: Mapping[str, float]) -> float:
    """The share of the question's words, by their rarity, that a sentence holds."""
    asked = _asked(question)
    total = sum(rarity.get(form, 0.0) for form in asked)
    return sum(rarity.get(form, 0.0) for form in asked if form in held) / total if total else 0.0
