"""Data sets to measure retrieval with: documents, queries, and the documents that answer each query."""

from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from infra.clients.agent.evaluation import ndcg
from tests.suites.bench.size import sized
from tests.suites.bench.tables import BenchTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SETTING: Final = "KHO_BENCH_DATA"
FOLDER: Final = sized(
    Path(__file__).with_name("samples"),
    full=Path(os.environ.get(SETTING) or Path(__file__).parents[4] / "shared" / "retrieval"),
)
CONVERSATION_SETTING: Final = "KHO_BENCH_CONVERSATIONS"
CONVERSATIONS: Final = sized(
    Path(__file__).with_name("sample_conversations"),
    full=Path(os.environ.get(CONVERSATION_SETTING) or Path(__file__).parents[4] / "shared" / "conversations"),
)
ENCYCLOPAEDIA: Final = sized("sample", full="xquad")
"""The data sets whose names begin so hold the same short articles in several languages."""
SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class DataSet:
    """Documents, and queries with the documents that answer them."""

    name: str
    corpus: dict[str, str]
    queries: dict[str, str]
    relevant: dict[str, set[str]]

    @property
    def collection(self) -> str:
        """The same for data sets of the same documents."""
        return f"c{zlib.crc32(''.join(self.corpus.values()).encode())}"

    def gains(self, search: Callable[[str], list[str]]) -> list[float]:
        """Return the nDCG@10 of each query, by a search that returns the documents for a query."""
        return [ndcg(search(query), self.relevant[id_]) for id_, query in self.queries.items()]


def data_sets(family: str = "") -> list[DataSet]:
    """Return the data sets whose names begin with `family`; none if their folder does not exist."""
    return [_read(folder) for folder in sorted(FOLDER.glob(f"{family}*"))] if FOLDER.is_dir() else []


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a conversation, in the session of this number."""

    session: int
    at: str
    speaker: str
    text: str

    @property
    def spoken(self) -> str:
        """The text after its speaker."""
        return f"{self.speaker}: {self.text}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a conversation, with the turns that are evidence for its answer."""

    id: str
    text: str
    category: str
    relevant: set[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A long conversation: its turns by id in their order, and questions to it."""

    name: str
    turns: dict[str, Turn]
    questions: list[Question]

    @property
    def sessions(self) -> dict[str, str]:
        """The text of each session by its id: its time, and a turn a line."""
        texts: dict[str, list[str]] = {}
        for turn in self.turns.values():
            texts.setdefault(str(turn.session), [turn.at]).append(turn.spoken)
        return {session: "\n".join(lines) for session, lines in texts.items()}

    def sessions_of(self, turns: Iterable[str]) -> list[str]:
        """Return the sessions of turns, each once, in the order of its first."""
        return list(dict.fromkeys(str(self.turns[turn].session) for turn in turns))


def conversations() -> list[Conversation]:
    """Return the conversations; none if their folder does not exist."""
    return [_conversation(each) for each in sorted(CONVERSATIONS.glob("*/"))] if CONVERSATIONS.is_dir() else []


def translated_questions() -> list[dict[str, str]]:
    """Return questions of the conversations in other languages: their `set`, `query`, `language` and `text`."""
    file = CONVERSATIONS / "translated.jsonl"
    return _records(file) if file.exists() else []


def not_measured_table(title: str, folder: Path = FOLDER, setting: str = SETTING) -> BenchTable:
    """Return a table that says that the data sets are missing."""
    return BenchTable(
        title, [], [], [f"Not measured: there are no data sets in `{folder.name}`; {setting} names theirs."]
    )


def _read(folder: Path) -> DataSet:
    queries = _texts(folder / "queries.jsonl")
    return DataSet(folder.name, _texts(folder / "corpus.jsonl"), queries, _relevant(folder))


def _conversation(folder: Path) -> Conversation:
    relevant = _relevant(folder)
    turns = {
        each["_id"]: Turn(each["session"], each["at"], each["speaker"], each["text"])
        for each in _records(folder / "messages.jsonl")
    }
    questions = [
        Question(each["_id"], each["text"], each["category"], relevant[each["_id"]])
        for each in _records(folder / "queries.jsonl")
    ]
    return Conversation(folder.name, turns, questions)


def _relevant(folder: Path) -> dict[str, set[str]]:
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, document, _grade = line.split()
        relevant.setdefault(query, set()).add(document)
    return relevant


def _texts(file: Path) -> dict[str, str]:
    return {record["_id"]: record["text"] for record in _records(file)}


def _records(file: Path) -> list[Any]:
    # Not splitlines(): a text may hold separators of its own.
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
