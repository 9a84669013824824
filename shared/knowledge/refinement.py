"""Query refinement: rates a query, and suggests words from the collections that would improve it."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from shared.search.embedding.models import current_space
from shared.search.language_detection import detect_language
from shared.search.tokenizer import fold_diacritics, stem, tokenize
from shared.search.translations import translate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.search.passages import SearchHit

RefinementStatus = Literal["optimal", "clarification_needed", "too_broad"]
RelevanceLabel = Literal["Highly Relevant", "Relevant", "Somewhat Relevant", "Marginally Relevant"]

_LABELS: Final[tuple[tuple[float, RelevanceLabel], ...]] = (
    (0.75, "Highly Relevant"),
    (0.5, "Relevant"),
    (0.25, "Somewhat Relevant"),
)
_OVERLAP: Final = 0.3
_BEST_SHARE: Final = 0.75
"""The share of the best score from which a hit counts as equally good."""
_FEW_WORDS: Final = 2
_MANY_SECTIONS: Final = 4
_MAX_SUGGESTIONS: Final = 5
_SPELLING_RATIO: Final = 0.8
_CORRECTED_WORDS: Final = 16
_CORRECTING_HITS: Final = 10
"""Each word of the query is compared with each word of these."""
_WORD: Final = re.compile(r"[^\W\d_][\w-]{2,}")
_UNSPACED: Final = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_RUN: Final = re.compile(rf"[{_UNSPACED}]{{2,6}}")
# Without spaces between words, two characters are about one word.
_CONTENT_WORD: Final = re.compile(rf"[{_UNSPACED}]{{2}}|[^\W\d_{_UNSPACED}](?:(?![{_UNSPACED}])[\w-]){{2,}}")
_STOP_WORD_LIST: Final = (
    "a about all an and any anything are as at be by can could did do does else everything find for from get give has "
    "have help how i in info information into is it its know like me more my need no not of on or our out please show "
    "some something stuff tell than that the their them then there these they thing things this to up use using want "
    "was we were what when where which who why will with would you your là gì của và có cho các những một như thế nào "
    "được trong với về tại sao làm bao nhiêu khi nào ở đâu tôi bạn này đó hãy giúp thông tin mọi thứ cái "
    "什么 怎么 如何 怎样 为何 哪里 哪个 谁的 这个 那个 关于 请问 帮助 帮我 告诉 介绍 信息 东西 一切 所有"
)
_STOP_WORDS: Final = frozenset(_STOP_WORD_LIST.split())


@dataclass(frozen=True, slots=True)
class QueryRefinement:
    """The rating of a query, and suggestions for a better one."""

    status: RefinementStatus
    suggestions: list[str]
    message: str


def label_of(score: float) -> RelevanceLabel:
    """Return the label of a relevance score."""
    return next((label for least, label in _LABELS if score >= least), "Marginally Relevant")


def refine(query: str, hits: Sequence[SearchHit]) -> QueryRefinement:
    """Rate `query` by its hits, and suggest improvements in its language."""
    language = detect_language(query)

    def say(status: RefinementStatus, words: list[str], text: str, **values: int) -> QueryRefinement:
        return QueryRefinement(status, words, translate(text, language, words=", ".join(words), **values))

    query_words = content_words(query)
    if not hits:
        return say("clarification_needed", [], "Nothing in these collections matches. Try other words.")
    corrections = _corrections(query_words, hits) if all(hit.overlap < _OVERLAP for hit in hits) else []
    if corrections:
        return say("clarification_needed", corrections, "Did you mean: {words}?")
    if not query_words or not any(_is_convincing(hit) for hit in hits):
        keywords = _keywords(hits, query)
        hint = " These words occur there: {words}." if keywords else ""
        return say("clarification_needed", keywords, f"The query is unclear.{hint}")
    best_hits = [hit for hit in hits if hit.score >= hits[0].score * _BEST_SHARE]
    sections = {(hit.passage.document, hit.passage.heading_path) for hit in best_hits}
    if len(query_words) <= _FEW_WORDS and len(sections) >= _MANY_SECTIONS:
        keywords = _keywords(best_hits, query)
        hint = " Add one of these: {words}." if keywords else ""
        return say("too_broad", keywords, f"{{number}} sections match.{hint}", number=len(sections))
    return say("optimal", [], "The query is specific enough.")


def _is_convincing(hit: SearchHit) -> bool:
    """Return True if a passage answers the query: by meaning alone, or by meaning and words."""
    calibration = current_space().calibration
    least = calibration.convincing if hit.overlap < _OVERLAP else calibration.convincing_with_words
    return hit.similarity >= least


def content_words(text: str) -> list[str]:
    """Return the words of `text` that are no stop words."""
    words = [word.lower() for word in _CONTENT_WORD.findall(text)]
    return [word for word in dict.fromkeys(words) if word not in _STOP_WORDS]


def _keywords(hits: Sequence[SearchHit], query: str) -> list[str]:
    """Return words that distinguish the hits: headings first, frequent ones first, none from the query."""
    query_forms = {form for word in tokenize(query) for form in word if form}
    frequent: Counter[str] = Counter()
    spellings: dict[str, str] = {}
    for hit in hits:
        headings = " ".join((*hit.passage.heading_path, hit.passage.title))
        weights = Counter(dict.fromkeys(_candidates(hit.passage.text), 1))
        weights.update(dict.fromkeys(_candidates(headings), 3))
        for word, weight in weights.items():
            spellings.setdefault(word.lower(), word)
            frequent[word.lower()] += weight
    ranked = sorted(frequent, key=lambda word: (-frequent[word], word))
    unused = (word for word in ranked if not any(form in query_forms for each in tokenize(word) for form in each))
    return [spellings[word] for word, _ in zip(unused, range(_MAX_SUGGESTIONS), strict=False)]


def _candidates(text: str) -> set[str]:
    words = {word for word in _WORD.findall(text) if word.lower() not in _STOP_WORDS and len(word) > 3}
    return {word for word in words if not _RUN.search(word)} | set(_RUN.findall(text))


def _corrections(query_words: Sequence[str], hits: Sequence[SearchHit]) -> list[str]:
    """Return words of the hits that words of the query may be misspellings of."""
    best_hits = hits[:_CORRECTING_HITS]
    spellings = {fold_diacritics(word.lower()): word for hit in best_hits for word in _candidates(hit.passage.text)}
    stems = {stem(plain) for plain in spellings}
    corrections = []
    for word in query_words[:_CORRECTED_WORDS]:
        plain = fold_diacritics(word)
        if stem(plain) not in stems and not any(plain in each for each in stems):
            corrections += [
                spellings[match] for match in difflib.get_close_matches(plain, list(spellings), 1, _SPELLING_RATIO)
            ]
    return list(dict.fromkeys(corrections))[:_MAX_SUGGESTIONS]
