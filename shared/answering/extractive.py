"""Extractive answers: the best sentences of the sources, without a language model."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shared.answering.sanitization import outside_code, remove_marks
from shared.search.language_detection import detect_language
from shared.search.tokenizer import tokenize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shared.answering.models import AnswerSource

_MAX_SOURCES: Final = 8
_MAX_SENTENCES: Final = 5
_MAX_CHARACTERS: Final = 900
_MAX_SENTENCE: Final = 500
_SOURCE_WEIGHT: Final = 0.6
"""Weight of the source's rank relative to the sentence's own words. Steps and lists rarely repeat their subject."""
_INTRODUCTION_WEIGHT: Final = 0.8
_LANGUAGE_BONUS: Final = 0.5
_BEST_SHARE: Final = 0.6
_FENCED: Final = re.compile(r"(?ms)^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[^\n]*$|\Z)")
_TABLE_LINE: Final = re.compile(r"[ \t]*\|")
_HEADING: Final = re.compile(r"[ \t]{0,3}#{1,6}([ \t]|$)|[ \t]*(=+|-+|\*+|_+)[ \t]*$")
_ITEM: Final = re.compile(r"[ \t]*(?:>[ \t]?)*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_QUOTE: Final = re.compile(r"\A[ \t]*>[ \t]?")
_END: Final = re.compile(r"(?<=[.!?…])[\"'”’)]{0,2}\s+(?=[^\sa-zà-öø-ÿ])|(?<=[。！？；])")
_NO_GAP: Final = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence of the source with this number, or a block that must stay whole."""

    number: int
    text: str
    is_block: bool = False
    introduction: str = ""
    """The line that introduces it, for example the sentence before a list."""


def best_sentences(question: str, sources: Sequence[AnswerSource], language: str) -> list[Quotation]:
    """Return the sentences that answer `question` best, in the order of their sources. There must be a source.

    Sentences in `language` are preferred.
    """
    candidates = [
        (quotation, source.score)
        for number, source in enumerate(sources[:_MAX_SOURCES], start=1)
        for quotation in _quotations(number, source)
    ]
    if not candidates:
        # The sources contain only headings, or lines that introduce nothing.
        return [Quotation(1, _shorten(" ".join(sources[0].text.split())))]
    candidate_words = [_words(quotation.text) for quotation, _ in candidates]
    introduction_words = [_words(quotation.introduction) for quotation, _ in candidates]
    rarity = _rarity([*candidate_words, *introduction_words])
    best = max(score for _, score in candidates) or 1.0
    values = [
        max(_overlap(question, words, rarity), _INTRODUCTION_WEIGHT * _overlap(question, words | introduction, rarity))
        + _SOURCE_WEIGHT * score / best
        + (_LANGUAGE_BONUS if language and detect_language(quotation.text) == language else 0.0)
        for (quotation, score), words, introduction in zip(candidates, candidate_words, introduction_words, strict=True)
    ]
    least = max(values) * _BEST_SHARE
    selected: set[int] = set()
    size = 0
    texts = set()
    for index in sorted(range(len(candidates)), key=lambda index: (-values[index], index)):
        text = candidates[index][0].text
        if len(selected) == _MAX_SENTENCES or values[index] < least:
            break
        if text in texts or (selected and size + len(text) > _MAX_CHARACTERS):
            continue
        texts.add(text)
        selected.add(index)
        size += len(text)
    return [candidates[index][0] for index in sorted(selected)]


def _quotations(number: int, source: AnswerSource) -> Iterator[Quotation]:
    if not source.is_prose:
        yield Quotation(number, source.snippet.strip("\n"), is_block=True)
        return
    index = 0
    for block in _FENCED.finditer(source.snippet):
        yield from _sentences(number, source.snippet[index : block.start()])
        yield Quotation(number, block[0].strip("\n"), is_block=True)
        index = block.end()
    yield from _sentences(number, source.snippet[index:])


def _sentences(number: int, text: str) -> Iterator[Quotation]:
    introduction = ""
    for paragraph, is_item in _paragraphs(text):
        if not is_item:
            introduction = ""
        sentences = [quoted for each in _END.split(paragraph) if (quoted := outside_code(each, remove_marks).strip())]
        for sentence in sentences:
            if sentence.endswith((":", "：")):
                introduction = sentence
            elif any(character.isalnum() for character in sentence):
                yield Quotation(number, _shorten(sentence), introduction=introduction)


def _shorten(sentence: str) -> str:
    return f"{sentence[:_MAX_SENTENCE].rstrip()}…" if len(sentence) > _MAX_SENTENCE else sentence


def _paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield paragraphs and list items as single lines without markup. Headings and tables are left out."""
    paragraph, is_item = "", False
    for line in text.split("\n"):
        item = _ITEM.match(line)
        ends = not line.strip() or _HEADING.match(line) or _TABLE_LINE.match(line)
        if (item or ends) and paragraph:
            yield paragraph, is_item
            paragraph = ""
        if item:
            paragraph, is_item = line[item.end() :].strip(), True
        elif not ends:
            is_item = is_item and bool(paragraph)
            paragraph = _join(paragraph, _QUOTE.sub("", line).strip())
    if paragraph:
        yield paragraph, is_item


def _join(before: str, line: str) -> str:
    if not before or not line:
        return before + line
    gap = "" if _NO_GAP.match(before[-1]) or _NO_GAP.match(line[0]) else " "
    return f"{before}{gap}{line}"


def _words(text: str) -> frozenset[str]:
    """Return the words of `text`, with and without diacritics."""
    return frozenset(form for word in tokenize(text) for form in word if form)


def _rarity(candidate_words: Sequence[frozenset[str]]) -> dict[str, float]:
    counts = Counter(form for words in candidate_words for form in words)
    return {form: math.log(1 + len(candidate_words) / count) for form, count in counts.items()}


def word_overlap(question: str, text: str) -> float:
    """Return the share in 0-1 of the question's words that `text` contains."""
    words = _words(text)
    return _overlap(question, words, dict.fromkeys(_question_words(question), 1.0))


def _question_words(question: str) -> set[str]:
    """Return the question's words without diacritics, because questions are often typed without them."""
    return {word.twin or word.term for word in tokenize(question)}


def _overlap(question: str, words: frozenset[str], rarity: Mapping[str, float]) -> float:
    """Return the rarity-weighted share of the question's words among `words`."""
    question_words = _question_words(question)
    total = sum(rarity.get(form, 0.0) for form in question_words)
    return sum(rarity.get(form, 0.0) for form in question_words if form in words) / total if total else 0.0
