"""Keywords for an experience that came without: the words that it says most, its title's before others.

English by words, variants of one word together; Vietnamese by pairs of syllables between function words; Chinese by
what recurs between function characters, as no dictionary is at hand; names as they are spelt.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from shared.experiences.models import MAX_KEYWORD, normalize_keywords
from shared.knowledge.tokenizer import stem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.experiences.models import ExperienceReport

_MOST: Final = 8
_TITLE: Final = 3
"""What a word in the title counts."""
_NAME: Final = 2
"""What a word counts more that is spelt as only names are: useState, HTTP2, node.js."""
_LONGEST: Final = 8
_HAN: Final = r"\u3400-\u4dbf\u4e00-\u9fff"
_RUNS: Final = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<word>[^\W\d_{_HAN}](?:[^\W{_HAN}.+#-]|[.+#-](?=[^\W_{_HAN}]))*[+#]*)|(?P<end>[^\w\s]|\n)"
)
_NAMED: Final = re.compile(r".[A-Z]|\d|[.+#-]")


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
    """`report` with its keywords as they are kept, or with some that are made from it."""
    return replace(report, keywords=normalize_keywords(report.keywords) or extract_keywords(report))


def extract_keywords(report: ExperienceReport) -> list[str]:
    """The keywords of `report`, the weightiest first."""
    weights: Counter[str] = Counter()
    spellings: dict[str, str] = {}
    runs: list[tuple[str, int]] = []
    body = (report.problem_description, report.root_cause or "", report.solution)
    for text, weight in ((report.title, _TITLE), *((text, 1) for text in body)):
        for phrase in _phrases(text):
            if isinstance(phrase, str):
                runs.append((phrase, weight))
                continue
            for word in _words(phrase):
                key = stem(word.lower())
                spellings.setdefault(key, word.lower())
                weights[key] += weight + (_NAME if _NAMED.search(word) else 0)
    for term, weight in _recurring(runs):
        spellings[term] = term
        weights[term] += weight
    best = sorted(weights, key=lambda key: -weights[key])[:_MOST]
    return [spellings[key][:MAX_KEYWORD] for key in best]


def _phrases(text: str) -> Iterator[list[str] | str]:
    """Words that stand together, and runs of Chinese."""
    together: list[str] = []
    for run in _RUNS.finditer(text):
        word = run["word"]
        if word and word.lower() not in _ENGLISH and word.lower() not in _VIETNAMESE:
            together.append(word)
            continue
        yield together
        together = []
        if run["han"]:
            yield from (part for part in _CHINESE.split(run["han"]) if len(part) > 1)
    yield together


def _words(phrase: list[str]) -> Iterator[str]:
    """English one by one; Vietnamese syllables by twos."""
    waiting = ""
    for word in phrase:
        if word.isascii():
            waiting = ""
            if len(word) > 1:
                yield word
        elif waiting:
            yield f"{waiting} {word}"
            waiting = ""
        else:
            waiting = word


def _recurring(runs: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """What recurs in runs of Chinese, as long as it can be; the shorter runs themselves where nothing does."""
    weights: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for run, weight in runs:
        for length in range(2, _LONGEST + 1):
            for at in range(len(run) - length + 1):
                weights[run[at : at + length]] += weight
                times[run[at : at + length]] += 1
    found: list[tuple[str, int]] = []
    for term in sorted((term for term in times if times[term] > 1), key=lambda term: (-weights[term], -len(term))):
        if not any(term in longer and weight == weights[term] for longer, weight in found):
            found.append((term, weights[term]))
    return found or [(run, weight) for run, weight in runs if len(run) <= _LONGEST]
