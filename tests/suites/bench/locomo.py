"""Finding the evidence for questions to long conversations: single turns by memory/search, and whole sessions."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from infra.clients.agent.evaluation import ndcg
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import until
from tests.suites.bench.baselines import Baselines
from tests.suites.bench.datasets import (
    CONVERSATION_SETTING,
    CONVERSATIONS,
    DataSet,
    conversations,
    not_measured_table,
    translated_questions,
)
from tests.suites.bench.embedding_cache import PROGRAM, SETTING, EmbeddingCache
from tests.suites.bench.retrieval import INTERVAL, RESAMPLES, ingest, search
from tests.suites.bench.tables import BenchTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.suites.bench.datasets import Conversation, Question

    Ranking = Callable[[str], list[str]]
    """From a question to the ids of turns or sessions, best first."""

LIMIT: Final = 50
"""The most messages that one search returns."""
CLOSE: Final = 5
"""The depth of any@5, and the constant of reciprocal-rank fusion."""
ROLES: Final = ("user", "assistant")
KHO: Final = "Kho"
WITHOUT_NAMES: Final = "Kho, messages without names"
AS_DOCUMENTS: Final = "Kho, sessions as documents"


@dataclass(slots=True)
class Judged:
    """The nDCG@10 of each question, and whether the first five results have evidence."""

    gains: list[float] = field(default_factory=list)
    close: list[bool] = field(default_factory=list)

    def add(self, ranked: list[str], relevant: set[str]) -> None:
        """Judge the results of one question."""
        self.gains.append(ndcg(ranked, relevant))
        self.close.append(bool(relevant.intersection(ranked[:CLOSE])))


def tables() -> list[BenchTable]:
    """Measure how well turns and sessions are found."""
    sets = conversations()
    if not sets:
        return [not_measured_table("Evidence in conversations", CONVERSATIONS, CONVERSATION_SETTING)]
    turns: dict[str, Judged] = {}
    sessions: dict[str, Judged] = {}
    with tempfile.TemporaryDirectory(prefix="kho-bench-") as name:
        cache = Path(os.environ.get(SETTING) or Path(name, "embeddings"))
        EmbeddingCache(cache).install()
        with KhoServer(Path(name, "one"), program=PROGRAM, environment={SETTING: str(cache)}) as server:
            for each in sets:
                _write(server, each)
            for each in sets:
                _judge(server, each, turns, sessions)
            languages = _languages(server, sets)
    questions = [question for each in sets for question in each.questions]
    size = f"{len(sets)} conversations, {sum(len(each.turns) for each in sets):,} turns, {len(questions):,} questions"
    return [
        _table(f"Turns: {size}", questions, turns, _TURN_NOTES),
        _table("Sessions of the same conversations", questions, sessions, _SESSION_NOTES),
        languages,
    ]


_TURN_NOTES: Final = [
    "Kho is `memory-server/memory/search` of a running `kho serve` over HTTP, in one conversation, with the default",
    "settings; without names, the speakers are the roles `user` and `assistant`. The baselines search `name: text`",
    "exactly: BM25 with Kho's words and the conversation's average length, e5, and the min-max fusion of both, 0.6 on",
    "e5. A result is right if it is evidence. By category: nDCG@10. The last column has the distance to the best",
    f"baseline with the 95 % interval of {RESAMPLES:,} paired bootstrap samples of the questions.",
]
_SESSION_NOTES: Final = [
    "A session is right if it holds evidence. Kho ranks it at its best message. As documents: a session is a document",
    "of a collection (its time, then `name: text` a line), found by `query_knowledge_base`. The baselines",
    "search whole sessions; the last one adds the reciprocal ranks of a session in BM25 of sessions, BM25 of turns and",
    "e5 of turns (a session at its best turn), with the constant 5.",
]


def _write(server: KhoServer, conversation: Conversation) -> None:
    """Write a conversation as messages with names, as messages without, and as documents."""
    ingest(server, _documents(conversation))
    speakers = list(dict.fromkeys(turn.speaker for turn in conversation.turns.values()))
    for turn in conversation.turns.values():
        role = ROLES[speakers.index(turn.speaker) % len(ROLES)]
        message = {"role": role, "content": turn.text}
        server.call("memory-server/memory/add_message", conversation_id=conversation.name, name=turn.speaker, **message)
        server.call("memory-server/memory/add_message", conversation_id=_without_names(conversation), **message)
    until(lambda: all(_is_indexed(server, id_) for id_ in (conversation.name, _without_names(conversation))))


def _judge(
    server: KhoServer, conversation: Conversation, turns: dict[str, Judged], sessions: dict[str, Judged]
) -> None:
    """Judge all rankings of one conversation."""
    plain = Baselines(
        {id_: turn.spoken for id_, turn in conversation.turns.items()}, len(conversation.turns)
    ).searches()
    whole = Baselines(conversation.sessions, len(conversation.sessions)).searches()
    by_name = {
        KHO: partial(_messages, server, conversation, conversation.name),
        WITHOUT_NAMES: partial(_messages, server, conversation, _without_names(conversation)),
    }
    documents = partial(search, server, _documents(conversation).collection)
    for question in conversation.questions:
        found = {name: ranking(question.text) for name, ranking in (by_name | plain).items()}
        for name, ranked in found.items():
            turns.setdefault(name, Judged()).add(ranked, question.relevant)
        right = set(conversation.sessions_of(question.relevant))
        in_sessions = {name: conversation.sessions_of(found[name]) for name in by_name}
        in_sessions[AS_DOCUMENTS] = documents(question.text)
        ranked_whole = {name: ranking(question.text) for name, ranking in whole.items()}
        best_turns = [conversation.sessions_of(found[name]) for name in ("BM25", "e5")]
        ranked_whole["reciprocal ranks"] = _summed([ranked_whole["BM25"], *best_turns])
        for name, ranked in (in_sessions | ranked_whole).items():
            sessions.setdefault(name, Judged()).add(ranked, right)


def _languages(server: KhoServer, sets: list[Conversation]) -> BenchTable:
    """Ask questions in other languages, too."""
    by_name = {each.name: each for each in sets}
    found: dict[str, Judged] = {}
    asked: set[tuple[str, str]] = set()
    for each in translated_questions():
        conversation = by_name[each["set"]]
        question = next(question for question in conversation.questions if question.id == each["query"])
        texts = {each["language"]: each["text"]}
        if (each["set"], each["query"]) not in asked:
            asked.add((each["set"], each["query"]))
            texts = {"en": question.text} | texts
        for language, text in texts.items():
            ranked = _messages(server, conversation, conversation.name, text)
            found.setdefault(language, Judged()).add(ranked, question.relevant)
    rows = [[language, str(len(each.close)), *_means(each)] for language, each in found.items()]
    return BenchTable(
        "Turns, for questions in other languages",
        ["", "questions", "nDCG@10", "any@5"],
        rows,
        ["The conversations are English. The questions are the same, translated."],
    )


def _table(title: str, questions: list[Question], judged: dict[str, Judged], notes: list[str]) -> BenchTable:
    categories = Counter(question.category for question in questions)
    of_category = {name: [question.category == name for question in questions] for name in categories}
    gains = {name: np.array(each.gains) for name, each in judged.items()}
    plain = max((each for name, each in gains.items() if KHO not in name), key=np.mean)
    rows = [
        [
            name,
            *_means(each),
            *(f"{gains[name][chosen].mean():.3f}" for chosen in of_category.values()),
            _distance(gains[name] - plain) if KHO in name else "",
        ]
        for name, each in judged.items()
    ]
    columns = [f"{name} ({count})" for name, count in categories.items()]
    return BenchTable(title, ["", "nDCG@10", "any@5", *columns, "relative to the best baseline"], rows, notes)


def _means(judged: Judged) -> list[str]:
    return [f"{np.mean(judged.gains):.3f}", f"{100 * np.mean(judged.close):.1f}"]


def _distance(difference: Any) -> str:
    samples = np.random.default_rng(1).choice(difference, (RESAMPLES, len(difference))).mean(axis=1)
    low, high = np.percentile(samples, INTERVAL)
    return f"{difference.mean():+.3f} ({low:+.3f} to {high:+.3f})"


def _summed(rankings: list[list[str]]) -> list[str]:
    """Return the ids by the sum of their reciprocal ranks."""
    sums: dict[str, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, start=1):
            sums[id_] = sums.get(id_, 0.0) + 1 / (CLOSE + rank)
    return sorted(sums, key=lambda id_: -sums[id_])


def _messages(server: KhoServer, conversation: Conversation, id_: str, query: str) -> list[str]:
    """Return the turns that a search of the messages finds, best first."""
    found: Any = server.call("memory-server/memory/search", query=query, conversation_id=id_, limit=LIMIT)
    ids = list(conversation.turns)
    return [ids[each["number"] - 1] for each in found["messages"]]


def _is_indexed(server: KhoServer, conversation_id: str) -> bool:
    """Return True if no message of a conversation waits for the index, beyond those that a search ranks itself."""
    found: Any = server.call("memory-server/memory/search", query="hello", conversation_id=conversation_id)
    return not found.get("not_yet_indexed")


def _documents(conversation: Conversation) -> DataSet:
    return DataSet(conversation.name, conversation.sessions, {}, {})


def _without_names(conversation: Conversation) -> str:
    return f"{conversation.name}-roles"
