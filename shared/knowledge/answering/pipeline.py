"""The pipeline: find, look closer, ask the web where it is allowed, have a model word the answer, all in its time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from shared.aside import begin, outcome, within
from shared.config import ConfigurationError, config
from shared.knowledge.answering.answers import Answer, Degraded, Source
from shared.knowledge.answering.cleaning import cleaned
from shared.knowledge.answering.extracting import best_sentences, share_of_words
from shared.knowledge.answering.languages import language_of, primary
from shared.knowledge.answering.prompting import prompt
from shared.knowledge.answering.relevance import bearing_on
from shared.knowledge.answering.rendering import quoting, worded
from shared.knowledge.passages import Question
from shared.rpc.errors import OutOfTime, ToolFailed, Unavailable
from shared.rpc.text import is_encodable
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from shared.knowledge.answering.answers import Asked, Reason
    from shared.knowledge.answering.budget import Budget
    from shared.knowledge.answering.prompting import Prompt
    from shared.knowledge.index import Index
    from shared.knowledge.passages import Hit
    from shared.knowledge.retrieval import Ranking
    from shared.language_model import Completion, LanguageModel
    from shared.web_search import WebResult, WebSearch

_LOOKED_FOR: Final = 20
_SPARE: Final = 5
"""How many more are looked for than are wanted: some may have changed meanwhile, or not bear on the question."""
_LOOKED_FOR_AGAIN: Final = 100
_WEB_RESULTS: Final = 5
_WEB_QUERY: Final = 500
_SHARE_OF_WEB: Final = 3
_MAX_TOKENS: Final = 1_000
_MAX_CHARACTERS: Final = 32_000
_DECIMALS: Final = 4
_LATE_SEARCH: Final = Degraded("web_search", "out_of_time", "The web search would not have been ready in time.")


@dataclass(frozen=True, slots=True)
class Answering:
    """What answers are made with; each part is opened when it is first needed."""

    index: Callable[[], Index]
    current: Callable[[str, Sequence[Hit]], list[Hit]]
    model: Callable[[], LanguageModel | None]
    web: Callable[[], WebSearch]

    def answer(self, asked: Asked, budget: Budget) -> Answer:
        """Answer a question from what is found; with nothing where nothing bears on it."""
        answer = Answer()
        searching = begin(lambda: self._searched(asked, budget)) if asked.with_web else None
        passages = self._passages(asked, budget, answer)
        pages = self._pages(searching, budget, answer) if searching else []
        answer.sources = _shared_out(passages, _as_sources(asked.question, pages), asked.top_k)
        if not answer.sources:
            return answer
        text = self._words(asked, budget, answer)
        answer.response = worded(text, answer.sources, asked.format) if text else _quoted(asked, answer.sources)
        return answer

    def _passages(self, asked: Asked, budget: Budget, answer: Answer) -> list[Source]:
        """The passages that bear on the question, of documents as they are now, best first."""
        try:
            ranking, hits = within(budget.left_for_searching, lambda: self._ranked(asked, budget))
        except TimeoutError:
            raise OutOfTime(
                "The documents could not be searched in time.",
                guidance="Nothing was changed: ask again, with a larger routing.max_latency_ms if you gave one.",
            ) from None
        answer.hits = len(ranking.hits)
        if ranking.missing:
            said = "is not answering" if ranking.missing == "unavailable" else "would not have been ready in time"
            answer.degraded.append(Degraded("reranker", ranking.missing, f"The closer look at the best {said}."))
        return [_as_source(hit) for hit in bearing_on(asked.question, hits, ranking.measure)]

    def _ranked(self, asked: Asked, budget: Budget) -> tuple[Ranking, list[Hit]]:
        """What is found, and what of it is so now; what no longer is does not stand in the way of what is."""
        top_k = max(_LOOKED_FOR, asked.top_k + _SPARE)
        question = Question(asked.question, asked.tenant_id, (asked.collection,), top_k, tags=asked.tags)
        while True:
            ranking = self.index().rank(question, budget.until)
            hits = self.current(asked.tenant_id, ranking.hits)
            stale = _documents(ranking.hits) - _documents(hits)
            is_all = len(ranking.hits) < question.top_k
            if not stale or is_all or len(hits) >= asked.top_k or (hits and budget.left <= 0):
                return ranking, hits
            question = replace(question, top_k=_LOOKED_FOR_AGAIN, without=(*question.without, *stale))

    def _searched(self, asked: Asked, budget: Budget) -> list[WebResult]:
        return self.web().search(asked.question[:_WEB_QUERY], _WEB_RESULTS, seconds=budget.left)

    def _pages(self, searching: Future[list[WebResult]], budget: Budget, answer: Answer) -> list[WebResult]:
        """What the web search found; with half of what is left of the time, where a model needs the other half."""
        waits = budget.left / 2 if _has_model() else budget.left
        try:
            return outcome(searching, waits)
        except TimeoutError:
            answer.degraded.append(_LATE_SEARCH)
        except ToolFailed as failure:
            # A search that reached its own time-out first is late for the same reason.
            late = budget.left <= 0
            answer.degraded.append(_LATE_SEARCH if late else Degraded("web_search", "unavailable", failure.message))
        return []

    def _words(self, asked: Asked, budget: Budget, answer: Answer) -> str:
        """A model's words, cleaned; none where it has none to give, and why."""
        told = prompt(asked, answer.sources)
        try:
            completion = self._completion(told, budget)
            answer.prompt_tokens, answer.completion_tokens = completion.prompt_tokens, completion.completion_tokens
            text = _cleaned(completion.text, told, asked, answer.sources)
        except _NoWords as missing:
            answer.degraded.append(Degraded("answer_model", missing.reason, missing.message))
            return ""
        if not completion.is_whole:
            message = "The language model's answer was cut off at its limit."
            answer.degraded.append(Degraded("answer_model", "cut_off", message))
        return text

    def _completion(self, told: Prompt, budget: Budget) -> Completion:
        """What the model says in its time, or `_NoWords`."""
        if not _has_model():
            raise _NoWords("not_configured", "No language model is configured.")
        seconds = budget.left

        def complete() -> Completion | None:
            model = self.model()
            # Whoever waits gives up first, and so knows why.
            later = seconds + 0.1
            return model.complete(told.system, told.text, max_tokens=_MAX_TOKENS, seconds=later) if model else None

        try:
            completion = within(seconds, complete)
        except TimeoutError:
            raise _NoWords("out_of_time", "The language model would not have answered in time.") from None
        except Unavailable as failure:
            raise _NoWords("unavailable", failure.message) from None
        except ConfigurationError as error:
            logger.warning("model", extra={"failure": str(error)})
            raise _NoWords("misconfigured", "The settings of the language model cannot be used.") from None
        assert completion
        return completion


class _NoWords(Exception):
    """The model has no words to give."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message


def _has_model() -> bool:
    return config().model_provider != "none"


def _cleaned(words: str, told: Prompt, asked: Asked, sources: Sequence[Source]) -> str:
    given = [asked.question, *(source.text for source in sources), *(source.id for source in sources if source.is_web)]
    usable = len(words) <= _MAX_CHARACTERS and is_encodable(words)
    text = cleaned(words, told.fence, told.shown, given) if usable else ""
    if not text:
        raise _NoWords("unusable", "The language model answered with nothing that can be used.")
    return text


def _quoted(asked: Asked, sources: Sequence[Source]) -> str:
    language = primary(asked.language) if asked.language else language_of(asked.question)
    return quoting(best_sentences(asked.question, sources, language), sources, language, asked.format)


def _shared_out(passages: Sequence[Source], pages: Sequence[Source], top_k: int) -> list[Source]:
    """At most `top_k` sources: documents first, and of the web a third, or as much as documents leave."""
    from_web = min(len(pages), max(top_k - len(passages), (top_k + 1) // _SHARE_OF_WEB))
    return [*passages[: top_k - from_web], *pages[:from_web]]


def _documents(hits: Sequence[Hit]) -> set[str]:
    return {hit.passage.document.id for hit in hits}


def _as_source(hit: Hit) -> Source:
    passage = hit.passage
    return Source(
        id=passage.document.document_id,
        snippet=passage.text,
        score=round(min(1.0, max(0.0, hit.score)), _DECIMALS),
        heading=" > ".join(passage.above),
        is_prose=passage.content_type == "prose",
    )


def _as_sources(question: str, pages: Sequence[WebResult]) -> list[Source]:
    """Pages as sources, in the order of the search; a page's score is the share of the question's words it shows."""
    return [
        Source(
            id=page.link,
            snippet=page.content or page.title,
            score=round(share_of_words(question, f"{page.title}\n{page.content}"), _DECIMALS),
            heading=page.title if page.content else "",
            is_web=True,
        )
        for page in pages
    ]
