"""Stored fields of an experience, rejected experiences, and near-duplicates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest

from shared.experiences import index as experience_index
from shared.rpc.caller import ANONYMOUS, LOCAL
from shared.search.embedding.e5 import E5
from shared.search.exhaustive_search import ExhaustiveSearch
from tests.helpers.experience_client import call_method, call_successfully, submit_experience

if TYPE_CHECKING:
    from pathlib import Path

    from infra.local.search_engine.embedded import EmbeddedVectorStore
    from shared.search.store import VectorStore

PROBLEM = {"title": "Kafka consumer lags", "problem_description": "It falls behind.", "solution": "Add partitions."}


def test_text_is_stored_verbatim_and_keywords_are_normalized(store: str) -> None:
    said = {
        "title": " Kafka\u00a0lags \u0000",
        "problem_description": "\tIt lags.\r\n",
        "solution": "Ờ — 分区\n",
        "root_cause": "slow",
        "context": "",
    }
    id_ = call_successfully("submit_experience", **said, keywords=["  Kafka ", "KAFKA", "Độ Trễ", "x" * 100])["id"]
    record = call_successfully("get_experience", id=id_)
    assert {name: record[name] for name in said} == said
    assert record["keywords"] == ["kafka", "độ trễ", "x" * 100]


@pytest.mark.parametrize("unseen", ["\u200b", "\u2060\ufeff", " \u200b\t", "\u00ad\u3164"])
def test_invisible_text_is_rejected(store: str, unseen: str) -> None:
    for field in ("title", "problem_description", "solution", "keywords"):
        said = PROBLEM | {field: ["kafka", unseen] if field == "keywords" else unseen}
        answer = call_method("submit_experience", ANONYMOUS, **said)
        assert [each["field"].partition(".")[0] for each in answer["error"]["details"]] == [field]
    assert call_method("query_experiences", keywords=unseen)["error"]["code"] == "INVALID_KEYWORDS"
    seen = {"title": f"{unseen}Kafka", "problem_description": f"It{unseen}lags.", "solution": "分区"}
    assert (
        call_successfully("get_experience", id=call_successfully("submit_experience", **seen)["id"])["title"]
        == seen["title"]
    )


def test_keyword_length_is_measured_after_normalization(store: str) -> None:
    for kept, length in (("İ" * 50, 100), ("Ờ" * 100, 100)):
        id_ = call_successfully("submit_experience", **PROBLEM, keywords=[kept])["id"]
        assert [len(each) for each in call_successfully("get_experience", id=id_)["keywords"]] == [length]
    answer = call_method("submit_experience", ANONYMOUS, **PROBLEM, keywords=["İ" * 51])
    assert [each["field"] for each in answer["error"]["details"]] == ["keywords.0"]


@pytest.mark.parametrize("action", ["get", "update", "delete", "restore"])
def test_new_experience_requires_all_fields(store: str, action: str) -> None:
    answer = call_method(f"{action}_experience", LOCAL)
    assert answer["error"]["code"] == "MISSING_REQUIRED_FIELDS"
    assert [each["field"] for each in answer["error"]["details"]] == ["id"]


@pytest.mark.parametrize(
    ("title", "problem", "wanted"),
    [
        ("React useState not updating", "The state of a React component stays stale.", {"react", "usestate"}),
        ("Kết nối PostgreSQL bị từ chối", "Không kết nối được từ Docker.", {"postgresql", "kết nối", "docker"}),
        ("数据库连接池耗尽", "高并发时数据库连接池耗尽。", {"数据库连接池耗尽"}),
    ],
)
def test_missing_keywords_are_extracted_from_the_text(store: str, title: str, problem: str, wanted: set[str]) -> None:
    none: list[dict[str, Any]] = [{}, {"keywords": []}, {"keywords": None}]
    for given_keywords in none:
        keywords = call_successfully("get_experience", id=submit_experience(title, problem, **given_keywords))[
            "keywords"
        ]
        assert wanted <= set(keywords)
        assert all(each == each.strip().lower() and 1 <= len(each) <= 100 for each in keywords)


def test_near_duplicate_is_linked_from_the_newer_experience(store: str) -> None:
    problem = "Reading the file raises UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0."
    solution = "Open the file with encoding='utf-16', as its byte order mark says, or convert it once with iconv."
    old = submit_experience("UnicodeDecodeError when reading a CSV file in Python", problem, solution)
    new = submit_experience("UnicodeDecodeError when reading CSV files in Python", problem, solution)
    other = submit_experience(
        "UnicodeEncodeError when printing", "The console cannot show emoji.", "Set PYTHONIOENCODING."
    )
    assert call_successfully("get_experience", id=new)["similar_to"] == old
    assert all("similar_to" not in call_successfully("get_experience", id=id_) for id_ in (old, other))
    experiences = call_successfully("query_experiences", keywords="UnicodeDecodeError reading CSV in Python")[
        "experiences"
    ]
    assert {old, new} <= {each["id"] for each in experiences}


class RecordingStore:
    """A vector store that records the names of the calls to it."""

    def __init__(self, store: EmbeddedVectorStore) -> None:
        self._store = store
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self._store, name)


def test_submission_makes_few_calls_to_the_index(
    store: str, shelves: EmbeddedVectorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A submission does not read back what it has just written, and compares only with candidates."""
    recording = RecordingStore(shelves)
    search = ExhaustiveSearch(E5(), cast("VectorStore", recording), uuid4().hex)
    monkeypatch.setattr(experience_index, "_search_index", lambda: search)
    for problem, calls in (
        (PROBLEM, ["write", "write", "read", "search", "write"]),
        (
            {
                "title": "Sourdough does not rise",
                "problem_description": "It stays flat.",
                "solution": "Warm the dough.",
            },
            ["write", "write", "read", "search", "write"],
        ),
        (PROBLEM, ["write", "write", "read", "search", "terms", "read", "write"]),
    ):
        recording.calls.clear()
        call_successfully("submit_experience", **problem)
        assert recording.calls == calls


def test_deleted_experience_is_not_named_as_duplicate(store: str) -> None:
    problem = "The linker says that a symbol of libfoo is undefined, though the archive is on the command line."
    old, new = (submit_experience(f"Undefined symbol when linking {n} libfoo", problem) for n in ("with", "against"))
    assert call_successfully("get_experience", id=new)["similar_to"] == old
    call_successfully("delete_experience", LOCAL, id=old)
    assert "similar_to" not in call_successfully("get_experience", id=new)
    assert "similar_to" not in call_successfully("update_experience", LOCAL, id=new, keywords=["linker"])
    call_successfully("restore_experience", LOCAL, id=old)
    assert call_successfully("get_experience", id=new)["similar_to"] == old


def test_secret_is_rejected_and_reported_by_field_and_kind(store: str, log: Path) -> None:
    secret = "AKIA" + "Z7Q2M4X9K1T3B8WD"
    for field in ("title", "problem_description", "root_cause", "solution", "context"):
        answer = call_method("submit_experience", ANONYMOUS, **PROBLEM | {field: f"use {secret} here"})
        assert [each["field"] for each in answer["error"]["details"]] == [field]
        assert "AWS" in answer["error"]["details"][0]["message"]
        assert answer["error"]["code"] == "CONTEXT_NOT_SANITIZED"
        assert secret not in json.dumps(answer) + log.read_text()
    answer = call_method("submit_experience", ANONYMOUS, **PROBLEM, keywords=[secret])
    assert [each["field"] for each in answer["error"]["details"]] == ["keywords"]
    id_ = submit_experience("Vault is sealed", "It asks for keys.")
    assert call_method("update_experience", LOCAL, id=id_, context=secret)["error"]["code"] == "CONTEXT_NOT_SANITIZED"
    assert "context" not in call_successfully("get_experience", id=id_)
