"""Keyword extraction for experiences without keywords: the most frequent words, with a bonus for the title.

English counts words, with inflected forms together. Vietnamese counts pairs of syllables between function words.
Chinese counts recurring strings between function characters, because there is no dictionary. Names keep their
spelling.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from shared.experiences.models import MAX_KEYWORD, ExperienceReport, normalize_keywords
from shared.search.tokenizer import stem

_MAX_KEYWORDS: Final = 8
_TITLE_WEIGHT: Final = 3
"""Weight of a word in the title."""
_NAME_BONUS: Final = 2
"""Bonus for a word spelled like a name: useState, HTTP2, node.js."""
_MAX_TERM: Final = 8
_HAN: Final = r"\u3400-\u4dbf\u4e00-\u9fff"
_TOKENS: Final = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<word>[^\W\d_{_HAN}](?:[^\W{_HAN}.+#-]|[.+#-](?=[^\W_{_HAN}]))*[+#]*)|(?P<end>[^\w\s]|\n)"
)
_NAME_LIKE: Final = re.compile(r".[A-Z]|\d|[.+#-]")


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ENGLISH: Final = _word_set("""
    a about after again all also am an and any are as at be because been before being both but by can cannot could
    did do does doing done down during each even every few first for from further get gets getting got had has have
    having he her here him his how however i if in instead into is it its itself just last like make makes many may
    me might more most much must my need needs no nor not now of off on once one only or other our out over own per
    please same see set she should since so some still such than that the their them then there these they this
    those though through to too try two under until up us use used uses using very via want was we were what when
    where whether which while who whose why will with within without would yet you your call called calls calling
    always never don doesn isn aren wasn won didn
""")
_VIETNAMESE: Final = _word_set("""
    và của là có cho các những một với trong khi được không để này đó từ đã bị thì mà ra vào lên xuống nhưng hoặc
    như nếu vì nên rồi lại cũng đang sẽ bằng tại do đến theo về trên dưới sau trước cần phải hãy rất chỉ còn nữa mỗi
    mọi nhiều ít hơn thay tôi bạn ta chúng nó gì nào sao đâu đây kia ở qua tới giữa thế vẫn luôn dùng làm cách việc
""")
_CHINESE: Final = re.compile(
    r"[的了是在和与或及而但被把将对从到为以于由其这那有没不也都就还又再很更最让使用当中时后前上下里内外个一些我你他它们会能要可"
    r"请]"
)


def with_keywords(report: ExperienceReport) -> ExperienceReport:
    """Return `report` with its normalized keywords, or with extracted ones if it has none."""
    return replace(report, keywords=normalize_keywords(report.keywords) or extract_keywords(report))


def extract_keywords(report: ExperienceReport) -> list[str]:
    """Return the keywords of `report` by descending weight."""
    weights: Counter[str] = Counter()
    spellings: dict[str, str] = {}
    chinese_runs: list[tuple[str, int]] = []
    body = (report.problem_description, report.root_cause or "", report.solution)
    for text, weight in ((report.title, _TITLE_WEIGHT), *((text, 1) for text in body)):
        for phrase in _phrases(text):
            if isinstance(phrase, str):
                chinese_runs.append((phrase, weight))
                continue
            for word in _words(phrase):
                key = stem(word.lower())
                spellings.setdefault(key, word.lower())
                weights[key] += weight + (_NAME_BONUS if _NAME_LIKE.search(word) else 0)
    for term, weight in _recurring(chinese_runs):
        spellings[term] = term
        weights[term] += weight
    keys = sorted(weights, key=lambda key: -weights[key])[:_MAX_KEYWORDS]
    return [spellings[key][:MAX_KEYWORD] for key in keys]


def _phrases(text: str) -> Iterator[list[str] | str]:
    """Yield phrases of adjacent words, and runs of Chinese characters."""
    phrase: list[str] = []
    for run in _TOKENS.finditer(text):
        word = run["word"]
        if word and word.lower() not in _ENGLISH and word.lower() not in _VIETNAMESE:
            phrase.append(word)
            continue
        yield phrase
        phrase = []
        if run["han"]:
            yield from (part for part in _CHINESE.split(run["han"]) if len(part) > 1)
    yield phrase


def _words(phrase: list[str]) -> Iterator[str]:
    """Yield English words one by one, and Vietnamese syllables in pairs."""
    previous = ""
    for word in phrase:
        if word.isascii():
            previous = ""
            if len(word) > 1:
                yield word
        elif previous:
            yield f"{previous} {word}"
            previous = ""
        else:
            previous = word


def _recurring(chinese_runs: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the longest strings that recur in runs of Chinese, or the shorter runs if none recurs."""
    weights: Counter[str] = Counter()
    occurrences: Counter[str] = Counter()
    for run, weight in chinese_runs:
        for length in range(2, _MAX_TERM + 1):
            for start in range(len(run) - length + 1):
                weights[run[start : start + length]] += weight
                occurrences[run[start : start + length]] += 1
    terms: list[tuple[str, int]] = []
    covered: set[tuple[str, int]] = set()
    for term in sorted(
        (term for term in occurrences if occurrences[term] > 1), key=lambda term: (-weights[term], -len(term))
    ):
        if (term, weights[term]) not in covered:
            terms.append((term, weights[term]))
            covered.update((part, weights[term]) for part in _parts(term))
    return terms or [(run, weight) for run, weight in chinese_runs if len(run) <= _MAX_TERM]


def _parts(term: str) -> Iterator[str]:
    """Yield the strings of two characters and more inside of a term."""
    for start in range(len(term) - 1):
        yield from (term[start:end] for end in range(start + 2, len(term) + 1))
