"""The pipeline: find, look closer, ask the web where it is allowed, have a model word the answer, all in its time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from shared.background import result, run_with_timeout, submit
from shared.config import ConfigurationError, config
from shared.knowledge.answering.extractive import best_sentences, share_of_words
from shared.knowledge.answering.language_detection import detect_language, primary_language
from shared.knowledge.answering.models import AnswerSource, DegradedStage, GeneratedAnswer
from shared.knowledge.answering.prompts import build_prompt
from shared.knowledge.answering.relevance import filter_relevant
from shared.knowledge.answering.rendering import render_answer, render_quotations
from shared.knowledge.answering.sanitization import sanitize_answer
from shared.knowledge.passages import SearchQuestion
from shared.rpc.errors import OutOfTime, ToolFailed, Unavailable
from shared.rpc.strict_json import is_encodable
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from shared.knowledge.answering.models import AnswerRequest, Reason
    from shared.knowledge.answering.prompts import ModelPrompt
    from shared.knowledge.answering.time_budget import TimeBudget
    from shared.knowledge.hybrid_search import Ranking
    from shared.knowledge.index import PassageIndex
    from shared.knowledge.passages import SearchHit
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
_LATE_SEARCH: Final = DegradedStage("web_search", "out_of_time", "The web search would not have been ready in time.")


@dataclass(frozen=True, slots=True)
class AnswerPipeline:
    """What answers are made with; each part is opened when it is first needed."""

    index: Callable[[], PassageIndex]
    current: Callable[[str, Sequence[SearchHit]], list[SearchHit]]
    model: Callable[[], LanguageModel | None]
    web: Callable[[], WebSearch]

    def answer(self, asked: AnswerRequest, budget: TimeBudget) -> GeneratedAnswer:
        """Answer a question from what is found; with nothing where nothing bears on it."""
        answer = GeneratedAnswer()
        searching = submit(lambda: self._searched(asked, budget)) if asked.with_web else None
        passages = self._passages(asked, budget, answer)
        pages = self._pages(searching, budget, answer) if searching else []
        answer.sources = _shared_out(passages, _as_sources(asked.question, pages), asked.top_k)
        if not answer.sources:
            return answer
        text = self._words(asked, budget, answer)
        answer.response = render_answer(text, answer.sources, asked.format) if text else _quoted(asked, answer.sources)
        return answer

    def _passages(self, asked: AnswerRequest, budget: TimeBudget, answer: GeneratedAnswer) -> list[AnswerSource]:
        """The passages that bear on the question, of documents as they are now, best first."""
        try:
            ranking, hits = run_with_timeout(budget.left_for_searching, lambda: self._ranked(asked, budget))
        except TimeoutError:
            raise OutOfTime(
                "The documents could not be searched in time.",
                guidance="Nothing was changed: ask again, with a larger routing.max_latency_ms if you gave one.",
            ) from None
        answer.hits = len(ranking.hits)
        if ranking.missing:
            said = "is not answering" if ranking.missing == "unavailable" else "would not have been ready in time"
            answer.degraded.append(DegradedStage("reranker", ranking.missing, f"The closer look at the best {said}."))
        return [_as_source(hit) for hit in filter_relevant(asked.question, hits, ranking.measure)]

    def _ranked(self, asked: AnswerRequest, budget: TimeBudget) -> tuple[Ranking, list[SearchHit]]:
        """What is found, and what of it is so now; what no longer is does not stand in the way of what is."""
        top_k = max(_LOOKED_FOR, asked.top_k + _SPARE)
        question = SearchQuestion(asked.question, asked.tenant_id, (asked.collection,), top_k, tags=asked.tags)
        while True:
            ranking = self.index().rank(question, budget.until)
            hits = self.current(asked.tenant_id, ranking.hits)
            stale = _documents(ranking.hits) - _documents(hits)
            is_all = len(ranking.hits) < question.top_k
            if not stale or is_all or len(hits) >= asked.top_k or (hits and budget.left <= 0):
                return ranking, hits
            question = replace(question, top_k=_LOOKED_FOR_AGAIN, without=(*question.without, *stale))

    def _searched(self, asked: AnswerRequest, budget: TimeBudget) -> list[WebResult]:
        return self.web().search(asked.question[:_WEB_QUERY], _WEB_RESULTS, seconds=budget.left)

    def _pages(
        self, searching: Future[list[WebResult]], budget: TimeBudget, answer: GeneratedAnswer
    ) -> list[WebResult]:
        """What the web search found; with half of what is left of the time, where a model needs the other half."""
        waits = budget.left / 2 if _has_model() else budget.left
        try:
            return result(searching, waits)
        except TimeoutError:
            answer.degraded.append(_LATE_SEARCH)
        except ToolFailed as failure:
            # A search that reached its own time-out first is late for the same reason.
            late = budget.left <= 0
            answer.degraded.append(
                _LATE_SEARCH if late else DegradedStage("web_search", "unavailable", failure.message)
            )
        return []

    def _words(self, asked: AnswerRequest, budget: TimeBudget, answer: GeneratedAnswer) -> str:
        """A model's words, cleaned; none where it has none to give, and why."""
        told = build_prompt(asked, answer.sources)
        try:
            completion = self._completion(told, budget)
            answer.prompt_tokens, answer.completion_tokens = completion.prompt_tokens, completion.completion_tokens
            text = _cleaned(completion.text, told, asked, answer.sources)
        except _NoCompletion as missing:
            answer.degraded.append(DegradedStage("answer_model", missing.reason, missing.message))
            return ""
        if not completion.is_whole:
            message = "The language model's answer was cut off at its limit."
            answer.degraded.append(DegradedStage("answer_model", "cut_off", message))
        return text

    def _completion(self, told: ModelPrompt, budget: TimeBudget) -> Completion:
        """What the model says in its time, or `_NoWords`."""
        if not _has_model():
            raise _NoCompletion("not_configured", "No language model is configured.")
        seconds = budget.left

        def complete() -> Completion | None:
            model = self.model()
            # Whoever waits gives up first, and so knows why.
            later = seconds + 0.1
            return model.complete(told.system, told.text, max_tokens=_MAX_TOKENS, seconds=later) if model else None

        try:
            completion = run_with_timeout(seconds, complete)
        except TimeoutError:
            raise _NoCompletion("out_of_time", "The language model would not have answered in time.") from None
        except Unavailable as failure:
            raise _NoCompletion("unavailable", failure.message) from None
        except ConfigurationError as error:
            logger.warning("model", extra={"failure": str(error)})
            raise _NoCompletion("misconfigured", "The settings of the language model cannot be used.") from None
        assert completion
        return completion


class _NoCompletion(Exception):
    """The model has no words to give."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message


def _has_model() -> bool:
    return config().model_provider != "none"


def _cleaned(words: str, told: ModelPrompt, asked: AnswerRequest, sources: Sequence[AnswerSource]) -> str:
    given = [asked.question, *(source.text for source in sources), *(source.id for source in sources if source.is_web)]
    usable = len(words) <= _MAX_CHARACTERS and is_encodable(words)
    text = sanitize_answer(words, told.fence, told.shown, given) if usable else ""
    if not text:
        raise _NoCompletion("unusable", "The language model answered with nothing that can be used.")
    return text


def _quoted(asked: AnswerRequest, sources: Sequence[AnswerSource]) -> str:
    language = primary_language(asked.language) if asked.language else detect_language(asked.question)
    return render_quotations(best_sentences(asked.question, sources, language), sources, language, asked.format)


def _shared_out(passages: Sequence[AnswerSource], pages: Sequence[AnswerSource], top_k: int) -> list[AnswerSource]:
    """At most `top_k` sources: documents first, and of the web a third, or as much as documents leave."""
    from_web = min(len(pages), max(top_k - len(passages), (top_k + 1) // _SHARE_OF_WEB))
    return [*passages[: top_k - from_web], *pages[:from_web]]


def _documents(hits: Sequence[SearchHit]) -> set[str]:
    return {hit.passage.document.id for hit in hits}


def _as_source(hit: SearchHit) -> AnswerSource:
    passage = hit.passage
    return AnswerSource(
        id=passage.document.document_id,
        snippet=passage.text,
        score=round(min(1.0, max(0.0, hit.score)), _DECIMALS),
        heading=" > ".join(passage.above),
        is_prose=passage.content_type == "prose",
    )


def _as_sources(question: str, pages: Sequence[WebResult]) -> list[AnswerSource]:
    """Pages as sources, in the order of the search; a page's score is the share of the question's words it shows."""
    return [
        AnswerSource(
            id=page.link,
            snippet=page.content or page.title,
            score=round(share_of_words(question, f"{page.title}\n{page.content}"), _DECIMALS),
            heading=page.title if page.content else "",
            is_web=True,
        )
        for page in pages
    ]
