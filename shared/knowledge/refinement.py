"""How well a query did, and which words would make it better: words that the collections hold."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from shared.knowledge.tokenizer import fold_diacritics, stem, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.knowledge.passages import SearchHit

RefinementStatus = Literal["optimal", "clarification_needed", "too_broad"]
RelevanceLabel = Literal["Highly Relevant", "Relevant", "Somewhat Relevant", "Marginally Relevant"]

_LABELS: Final[tuple[tuple[float, RelevanceLabel], ...]] = (
    (0.75, "Highly Relevant"),
    (0.5, "Relevant"),
    (0.25, "Somewhat Relevant"),
)
_ALIKE_IN_MEANING: Final = 0.65
"""From here on, a passage speaks of what was asked though it shares no word with it: another language, other words."""
_ALIKE_AND_SHARED: Final = 0.5
_SHARED: Final = 0.3
_AS_GOOD: Final = 0.75
"""What share of the best score others need to be as good an answer."""
_FEW_WORDS: Final = 2
_MANY_SECTIONS: Final = 4
_SUGGESTED: Final = 5
_ALIKE: Final = 0.8
_WORD: Final = re.compile(r"[^\W\d_][\w-]{2,}")
_UNSPACED: Final = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUN: Final = re.compile(rf"[{_UNSPACED}]{{2,6}}")
# Where no spaces part the words, two characters are about one.
_NAMED: Final = re.compile(rf"[{_UNSPACED}]{{2}}|[^\W\d_{_UNSPACED}](?:(?![{_UNSPACED}])[\w-]){{2,}}")
_EMPTY: Final = (
    "a about all an and any anything are as at be by can could did do does else everything find for from get give has "
    "have help how i in info information into is it its know like me more my need no not of on or our out please show "
    "some something stuff tell than that the their them then there these they thing things this to up use using want "
    "was we were what when where which who why will with would you your là gì của và có cho các những một như thế nào "
    "được trong với về tại sao làm bao nhiêu khi nào ở đâu tôi bạn này đó hãy giúp thông tin mọi thứ cái "
    "什么 怎么 如何 怎样 为何 哪里 哪个 谁的 这个 那个 关于 请问 帮助 帮我 告诉 介绍 信息 东西 一切 所有"
)
_EMPTY_WORDS: Final = frozenset(_EMPTY.split())


@dataclass(frozen=True, slots=True)
class QueryRefinement:
    """Whether the query was good, and what to say instead if not."""

    status: RefinementStatus
    suggestions: list[str]
    message: str


def label_of(score: float) -> RelevanceLabel:
    """The words for a relevance score."""
    return next((label for least, label in _LABELS if score >= least), "Marginally Relevant")


def refine(query: str, hits: Sequence[SearchHit]) -> QueryRefinement:
    """What `hits` say of `query`."""
    asked = content_words(query)
    if not hits:
        return QueryRefinement("clarification_needed", [], "Nothing in these collections matches. Try other words.")
    spelled = _respelled(asked, hits) if all(hit.overlap < _SHARED for hit in hits) else []
    if spelled:
        return QueryRefinement("clarification_needed", spelled, f"Did you mean: {', '.join(spelled)}?")
    if not asked or not any(_is_convincing(hit) for hit in hits):
        found = _keywords(hits, query)
        said = f" These words occur there: {', '.join(found)}." if found else ""
        return QueryRefinement("clarification_needed", found, f"It is not clear what is asked for.{said}")
    good = [hit for hit in hits if hit.score >= hits[0].score * _AS_GOOD]
    sections = {(hit.passage.document, hit.passage.heading_path) for hit in good}
    if len(asked) <= _FEW_WORDS and len(sections) >= _MANY_SECTIONS:
        found = _keywords(good, query)
        said = f" Add one of these: {', '.join(found)}." if found else ""
        return QueryRefinement("too_broad", found, f"{len(sections)} sections speak of this.{said}")
    return QueryRefinement("optimal", [], "The query is specific enough.")


def _is_convincing(hit: SearchHit) -> bool:
    """Whether a passage speaks of what was asked: by its meaning alone, or by meaning and words."""
    return hit.similarity >= _ALIKE_IN_MEANING or (hit.similarity >= _ALIKE_AND_SHARED and hit.overlap >= _SHARED)


def content_words(text: str) -> list[str]:
    """The words of `text` that name something."""
    named = [word.lower() for word in _NAMED.findall(text)]
    return [word for word in dict.fromkeys(named) if word not in _EMPTY_WORDS]


def _keywords(hits: Sequence[SearchHit], query: str) -> list[str]:
    """The words that tell the hits apart: in headings first, in few of them, not in the query."""
    known = {spelt for word in tokenize(query) for spelt in word if spelt}
    frequent: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for hit in hits:
        headings = " ".join((*hit.passage.heading_path, hit.passage.title))
        weights = Counter(dict.fromkeys(_candidates(hit.passage.text), 1))
        weights.update(dict.fromkeys(_candidates(headings), 3))
        for word, weight in weights.items():
            shown.setdefault(word.lower(), word)
            frequent[word.lower()] += weight
    ranked = sorted(frequent, key=lambda word: (-frequent[word], word))
    fresh = (word for word in ranked if not any(spelt in known for each in tokenize(word) for spelt in each))
    return [shown[word] for word, _ in zip(fresh, range(_SUGGESTED), strict=False)]


def _candidates(text: str) -> set[str]:
    named = {word for word in _WORD.findall(text) if word.lower() not in _EMPTY_WORDS and len(word) > 3}
    return {word for word in named if not _RUN.search(word)} | set(_RUN.findall(text))


def _respelled(asked: Sequence[str], hits: Sequence[SearchHit]) -> list[str]:
    """Words of the hits that words of the query may be misspellings of."""
    there = {fold_diacritics(word.lower()): word for hit in hits for word in _candidates(hit.passage.text)}
    stems = {stem(plain) for plain in there}
    found = []
    for word in asked:
        plain = fold_diacritics(word)
        if stem(plain) not in stems and not any(plain in each for each in stems):
            found += [there[near] for near in difflib.get_close_matches(plain, list(there), 1, _ALIKE)]
    return list(dict.fromkeys(found))[:_SUGGESTED]
