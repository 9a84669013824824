"""The answer pipeline: retrieval, optional web search, relevance filter and language model within a time budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from shared.answering.extractive import best_sentences, word_overlap
from shared.answering.models import AnswerSource, DegradedStage, GeneratedAnswer
from shared.answering.prompts import build_prompt
from shared.answering.relevance import filter_relevant
from shared.answering.rendering import render_answer, render_quotations
from shared.answering.sanitization import sanitize_answer
from shared.platform.background import result, run_with_timeout, submit
from shared.platform.config import ConfigurationError, config
from shared.platform.telemetry import logger, seconds_so_far
from shared.rpc.errors import OutOfTime, ToolFailed, Unavailable
from shared.rpc.observation import REQUEST_SECONDS
from shared.rpc.strict_json import is_encodable
from shared.search.language_detection import detect_language, primary_language
from shared.search.passages import SearchQuestion
from shared.search.translations import LANGUAGES, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from typing import Self

    from shared.answering.models import AnswerRequest, Reason
    from shared.answering.prompts import ModelPrompt
    from shared.language_model import Completion, LanguageModel
    from shared.search.hybrid_search import Ranking
    from shared.search.index import PassageIndex
    from shared.search.passages import SearchHit
    from shared.web_search import DuckDuckGo, WebResult

_MAX_SECONDS: Final = REQUEST_SECONDS - 1
_SEARCH_SECONDS: Final = 3.0
"""Minimum for a search, even within a smaller budget: the first search of a process loads the model."""
_RESERVE_SHARE: Final = 0.1
_MIN_RESERVE: Final = 0.05
_MAX_RESERVE: Final = 0.25
_MIN_HITS: Final = 20
_EXTRA_HITS: Final = 5
"""Hits requested beyond those wanted: some may be outdated or irrelevant."""
_RETRY_HITS: Final = 100
_WEB_RESULTS: Final = 5
_MAX_WEB_QUERY: Final = 500
_WEB_FRACTION: Final = 3
_MAX_TOKENS: Final = 1_000
_MAX_CHARACTERS: Final = 32_000
_DECIMALS: Final = 4
_LATE_SEARCH: Final = DegradedStage("web_search", "out_of_time", "The web search would not have been ready in time.")
_FAILED_SEARCH: Final = "The web search failed."


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """The time budget of an answer, counted from the start of its request.

    Deadlines for optional stages and for the search are values of `time.monotonic`.
    """

    deadline: float
    search_deadline: float

    @classmethod
    def of(cls, milliseconds: int | None) -> Self:
        """Return the budget of the current request, limited to `milliseconds` if given."""
        seconds = min(_MAX_SECONDS, _MAX_SECONDS if milliseconds is None else milliseconds / 1000)
        started = time.monotonic() - seconds_so_far()
        reserve = min(_MAX_RESERVE, max(_MIN_RESERVE, seconds * _RESERVE_SHARE))
        return cls(started + seconds - reserve, started + max(seconds, _SEARCH_SECONDS))

    @property
    def seconds_left(self) -> float:
        """The seconds left for optional stages."""
        return self.deadline - time.monotonic()

    @property
    def search_seconds_left(self) -> float:
        """The seconds left for the search."""
        return self.search_deadline - time.monotonic()


@dataclass(frozen=True, slots=True)
class AnswerPipeline:
    """Generates answers. Each dependency is opened when it is first needed."""

    index: Callable[[], PassageIndex]
    drop_stale: Callable[[str, Sequence[SearchHit]], list[SearchHit]]
    model: Callable[[], LanguageModel | None]
    web: Callable[[], DuckDuckGo]

    def answer(self, request: AnswerRequest, budget: TimeBudget) -> GeneratedAnswer:
        """Answer a question in its language. Without relevant sources the answer is empty."""
        answer = self._answer(request, budget)
        answer.language = _language_of(request)
        answer.degraded = [replace(each, message=_message(each, answer.language)) for each in answer.degraded]
        return answer

    def _answer(self, request: AnswerRequest, budget: TimeBudget) -> GeneratedAnswer:
        answer = GeneratedAnswer()
        web_search = None
        if request.with_web:
            query = request.question[:_MAX_WEB_QUERY]
            web_search = submit(lambda: self.web().search(query, _WEB_RESULTS, seconds=budget.seconds_left))
        passages = self._relevant_passages(request, budget, answer)
        pages = self._web_pages(web_search, budget, answer) if web_search else []
        answer.sources = _select_sources(passages, _as_sources(request.question, pages), request.top_k)
        if not answer.sources:
            return answer
        text = self._generate(request, budget, answer)
        answer.response = (
            render_answer(text, answer.sources, request.format) if text else _quotations(request, answer.sources)
        )
        return answer

    def _relevant_passages(
        self, request: AnswerRequest, budget: TimeBudget, answer: GeneratedAnswer
    ) -> list[AnswerSource]:
        """Return the relevant passages of current documents, best first."""
        try:
            ranking, hits = run_with_timeout(budget.search_seconds_left, lambda: self._rank_current(request, budget))
        except TimeoutError:
            raise OutOfTime(
                "The documents could not be searched in time.",
                guidance="Nothing was changed: ask again, with a larger routing.max_latency_ms if you gave one.",
            ) from None
        answer.hits = len(ranking.hits)
        if ranking.missing:
            problem = "is not available" if ranking.missing == "unavailable" else "would not have been ready in time"
            answer.degraded.append(DegradedStage("reranker", ranking.missing, f"The reranking {problem}."))
        return [_as_source(hit) for hit in filter_relevant(request.question, hits, ranking.measure)]

    def _rank_current(self, request: AnswerRequest, budget: TimeBudget) -> tuple[Ranking, list[SearchHit]]:
        """Search, and drop outdated hits. Search again without their documents if too few hits are left."""
        top_k = max(_MIN_HITS, request.top_k + _EXTRA_HITS)
        question = SearchQuestion(
            request.question,
            request.tenant_id,
            (request.collection,),
            top_k,
            tags=request.tags,
            metadata=request.metadata,
        )
        while True:
            ranking = self.index().search(question, budget.deadline)
            hits = self.drop_stale(request.tenant_id, ranking.hits)
            stale = _documents(ranking.hits) - _documents(hits)
            is_all = len(ranking.hits) < question.top_k
            if not stale or is_all or len(hits) >= request.top_k or (hits and budget.seconds_left <= 0):
                return ranking, hits
            question = replace(question, top_k=_RETRY_HITS, excluded_documents=(*question.excluded_documents, *stale))

    def _web_pages(
        self, web_search: Future[list[WebResult]], budget: TimeBudget, answer: GeneratedAnswer
    ) -> list[WebResult]:
        """Return the found web pages. If a model needs time too, the search may use half of what is left."""
        seconds = budget.seconds_left / 2 if _has_model() else budget.seconds_left
        try:
            return result(web_search, seconds)
        except TimeoutError:
            answer.degraded.append(_LATE_SEARCH)
        except ToolFailed as failure:
            # A search that reached its own time-out first is late for the same reason.
            is_late = budget.seconds_left <= 0
            answer.degraded.append(
                _LATE_SEARCH if is_late else DegradedStage("web_search", "unavailable", failure.message)
            )
        return []

    def _generate(self, request: AnswerRequest, budget: TimeBudget, answer: GeneratedAnswer) -> str:
        """Return the model's sanitized answer, or '' after recording why there is none."""
        prompt = build_prompt(request, answer.sources)
        try:
            completion = self._complete(prompt, budget)
            answer.prompt_tokens, answer.completion_tokens = completion.prompt_tokens, completion.completion_tokens
            text = _sanitize(completion.text, prompt, request, answer.sources)
        except _NoCompletion as failure:
            answer.degraded.append(DegradedStage("answer_model", failure.reason, failure.message))
            return ""
        if not completion.is_whole:
            message = "The language model's answer was cut off at its limit."
            answer.degraded.append(DegradedStage("answer_model", "cut_off", message))
        return text

    def _complete(self, prompt: ModelPrompt, budget: TimeBudget) -> Completion:
        """Return the model's completion in the time left, or raise `_NoCompletion`."""
        if not _has_model():
            raise _NoCompletion("not_configured", "No language model is configured.")
        seconds = budget.seconds_left

        def complete() -> Completion | None:
            model = self.model()
            # The caller times out first, so that it reports the time-out.
            limit = seconds + 0.1
            return model.complete(prompt.system, prompt.text, max_tokens=_MAX_TOKENS, seconds=limit) if model else None

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
    """The model returned no usable answer."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message


def _has_model() -> bool:
    return config().model_provider != "none"


def _sanitize(text: str, prompt: ModelPrompt, request: AnswerRequest, sources: Sequence[AnswerSource]) -> str:
    known_texts = [
        request.question,
        *(source.text for source in sources),
        *(source.id for source in sources if source.is_web),
    ]
    usable = len(text) <= _MAX_CHARACTERS and is_encodable(text)
    text = sanitize_answer(text, prompt.fence, prompt.shown, known_texts) if usable else ""
    if not text:
        raise _NoCompletion("unusable", "The language model answered with nothing that can be used.")
    return text


def _language_of(request: AnswerRequest) -> str:
    return primary_language(request.language) if request.language else detect_language(request.question)


def _message(stage: DegradedStage, language: str) -> str:
    """Return the stage's message in `language`. What a search engine said has no translation."""
    message = translate(stage.message, language)
    untranslated = message == stage.message and stage.dropped == "web_search" and language in LANGUAGES
    return translate(_FAILED_SEARCH, language) if untranslated else message


def _quotations(request: AnswerRequest, sources: Sequence[AnswerSource]) -> str:
    language = _language_of(request)
    return render_quotations(best_sentences(request.question, sources, language), sources, language, request.format)


def _select_sources(passages: Sequence[AnswerSource], pages: Sequence[AnswerSource], top_k: int) -> list[AnswerSource]:
    """Return at most `top_k` sources: documents first, web pages for a third or for the slots documents leave."""
    from_web = min(len(pages), max(top_k - len(passages), (top_k + 1) // _WEB_FRACTION))
    return [*passages[: top_k - from_web], *pages[:from_web]]


def _documents(hits: Sequence[SearchHit]) -> set[str]:
    return {hit.passage.document.id for hit in hits}


def _as_source(hit: SearchHit) -> AnswerSource:
    passage = hit.passage
    return AnswerSource(
        id=passage.document.document_id,
        snippet=passage.text,
        score=round(min(1.0, max(0.0, hit.score)), _DECIMALS),
        heading=" > ".join(passage.headings),
        is_prose=passage.content_type == "prose",
    )


def _as_sources(question: str, pages: Sequence[WebResult]) -> list[AnswerSource]:
    """Convert pages to sources in search order. A page's score is the share of the question's words in it."""
    return [
        AnswerSource(
            id=page.link,
            snippet=page.content or page.title,
            score=round(word_overlap(question, f"{page.title}\n{page.content}"), _DECIMALS),
            heading=page.title if page.content else "",
            is_web=True,
        )
        for page in pages
    ]
