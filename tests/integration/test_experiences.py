"""Experiences through their functions, on the real store and the real index."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doors import jsonrpc
from infra.local.dynamodb import connect
from infra.local.functions import Functions
from infra.local.template import load
from recall_kit import finding, query_experiences, table
from recall_kit.finding import recount
from shared.config import config
from shared.dynamodb import client
from shared.experiences import experiences as stored_experiences
from shared.experiences.counting import Counting
from shared.knowledge.embedding.e5 import E5
from shared.knowledge.embedding.spaces import E5_SMALL
from shared.knowledge.matching import Matcher
from shared.knowledge.store.embedded import Embedded
from shared.rpc import invoke
from shared.rpc.caller import ANONYMOUS, LOCAL, Caller
from shared.rpc.errors import Unavailable
from shared.telemetry import REQUEST_SECONDS
from tests.experiences import asked, done, final_score, is_in_order, paged, submitted
from tests.mcp import event, said
from workers import count_queries, index_experiences

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = ("timeout", "deadlock", "cache", "segfault", "CORS", "encoding", "leak", "race", "certificate", "proxy")
MATCHER = finding._matcher
PROBLEM = {"title": "Kafka consumer lags", "problem_description": "It falls behind.", "solution": "Add partitions."}


@pytest.fixture(scope="module")
def shelves(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """Where tests keep what they index."""
    opened = Embedded(replace(E5_SMALL, tokens=False), str(tmp_path_factory.mktemp("shelves")))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _shelf(shelves: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection of a test's own, as experiences are everyone's."""
    own = Matcher(E5(), shelves, uuid4().hex)
    monkeypatch.setattr(finding, "_matcher", lambda: own)


def noted(store: str) -> list[dict[str, Any]]:
    """The keys of what queries have returned and nobody has counted."""
    pages = connect(store).get_paginator("scan").paginate(TableName=table().name, ConsistentRead=True)
    items = [item for page in pages for item in page["Items"] if item["pk"]["S"].startswith("served#")]
    return [{"pk": item["pk"], "sk": item["sk"]} for item in items]


def records(*keys: Any) -> dict[str, Any]:
    """The stream's event about the items under `keys`."""
    return {
        "Records": [
            {"eventID": "1", "eventName": "INSERT", "dynamodb": {"Keys": key, "SequenceNumber": str(number)}}
            for number, key in enumerate(keys)
        ]
    }


def count_all(store: str) -> None:
    keys = noted(store)
    assert not keys or count_queries.handler(records(*keys), None) == {"batchItemFailures": []}


@pytest.fixture
def counted(store: str) -> Iterator[None]:
    """What other tests have asked is counted before this one begins."""
    count_all(store)
    yield
    count_all(store)


def counts(*ids: str) -> list[int]:
    return [done("get_experience", id=id_)["query_count"] for id_ in ids]


def test_the_next_query_finds_what_was_submitted(store: str) -> None:
    id_ = submitted("Kafka consumer lags behind", "The lag grows without end.", "Add partitions and consumers.")
    found = done("query_experiences", keywords="kafka consumer lag")
    assert [each["id"] for each in found["experiences"]] == [id_]
    assert (found["total"], found["limit"], found["offset"]) == (1, 10, 0)
    assert set(found["experiences"][0]) == {
        "id", "title", "problem_description", "solution", "keywords", "query_count", "created_at", "relevance_score",
    }  # fmt: skip
    assert 0 < found["experiences"][0]["relevance_score"] <= 1


def test_text_is_kept_as_it_came_and_keywords_are_made_uniform(store: str) -> None:
    said = {
        "title": " Kafka\u00a0lags \u0000",
        "problem_description": "\tIt lags.\r\n",
        "solution": "Ờ — 分区\n",
        "root_cause": "slow",
        "context": "",
    }
    id_ = done("submit_experience", **said, keywords=["  Kafka ", "KAFKA", "Độ Trễ", "x" * 100])["id"]
    shown = done("get_experience", id=id_)
    assert {name: shown[name] for name in said} == said
    assert shown["keywords"] == ["kafka", "độ trễ", "x" * 100]


@pytest.mark.parametrize("unseen", ["\u200b", "\u2060\ufeff", " \u200b\t", "\u00ad\u3164"])
def test_what_nobody_can_see_is_no_text(store: str, unseen: str) -> None:
    for field in ("title", "problem_description", "solution", "keywords"):
        said = PROBLEM | {field: ["kafka", unseen] if field == "keywords" else unseen}
        answer = asked("submit_experience", ANONYMOUS, **said)
        assert [each["field"].partition(".")[0] for each in answer["error"]["details"]] == [field]
    assert asked("query_experiences", keywords=unseen)["error"]["code"] == "INVALID_KEYWORDS"
    seen = {"title": f"{unseen}Kafka", "problem_description": f"It{unseen}lags.", "solution": "分区"}
    assert done("get_experience", id=done("submit_experience", **seen)["id"])["title"] == seen["title"]


def test_keywords_are_as_long_as_they_are_kept(store: str) -> None:
    for kept, length in (("İ" * 50, 100), ("Ờ" * 100, 100)):
        id_ = done("submit_experience", **PROBLEM, keywords=[kept])["id"]
        assert [len(each) for each in done("get_experience", id=id_)["keywords"]] == [length]
    answer = asked("submit_experience", ANONYMOUS, **PROBLEM, keywords=["İ" * 51])
    assert [each["field"] for each in answer["error"]["details"]] == ["keywords.0"]


@pytest.mark.parametrize("action", ["get", "update", "delete", "restore"])
def test_without_an_id_what_is_required_is_missing(store: str, action: str) -> None:
    answer = asked(f"{action}_experience", LOCAL)
    assert answer["error"]["code"] == "MISSING_REQUIRED_FIELDS"
    assert [each["field"] for each in answer["error"]["details"]] == ["id"]


def test_an_order_is_what_the_formula_says_and_pages_join(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids: list[str] = []
    began = datetime.now(UTC)
    for number in range(40):
        created = began - timedelta(days=number * 37 % 700, seconds=number)
        said_at = created.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        monkeypatch.setattr(stored_experiences, "now", lambda said_at=said_at: said_at)
        word, other = WORDS[number % 10], WORDS[number * 3 % 7]
        ids.append(submitted(f"The {word} of a gateway and its {other}", f"Seen {word} number {number // 10}."))

    @settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(st.tuples(st.integers(0, 39), st.sampled_from([1, 1, 5, 50])), max_size=12),
        st.sampled_from([*WORDS, "gateway", "why does my gateway leak", "网关超时"]),
        st.integers(1, 50),
    )
    def holds(served: list[tuple[int, int]], keywords: str, limit: int) -> None:
        for number, times in served:
            for _ in range(times):
                Counting(table()).note([ids[number]])
        count_all(store)
        asked_at = datetime.now(UTC)
        whole = done("query_experiences", keywords=keywords, limit=50)
        rest = done("query_experiences", keywords=keywords, limit=50, offset=50)
        everything = whole["experiences"] + rest["experiences"]
        assert whole["total"] == rest["total"] == len(everything)
        assert is_in_order(everything, asked_at), [(final_score(each, asked_at), each) for each in everything]
        assert [each["id"] for each in paged(keywords, limit)] == [each["id"] for each in everything]

    holds()


def test_all_matches_are_told_and_paged_however_many(store: str) -> None:
    ids = {submitted(f"Websocket closes, case {number}", "It closes.") for number in range(140)}
    first = done("query_experiences", keywords="websocket closes", limit=50)
    assert first["total"] == 140
    assert {each["id"] for each in paged("websocket closes", 50)} == ids
    assert done("query_experiences", keywords="websocket closes", offset=140)["experiences"] == []


def test_what_does_not_match_is_not_returned(store: str) -> None:
    submitted("React state is stale in a closure", "The handler sees an old value.", "Use the functional update form.")
    found = done("query_experiences", keywords="how to bake sourdough bread")
    assert (found["experiences"], found["total"]) == ([], 0)


def test_who_is_deleted_is_shown_to_nobody_until_restored(store: str) -> None:
    id_, other = (
        submitted("Nginx answers 502", "Upstream closed."),
        submitted("Nginx answers 502 at night", "Upstream."),
    )
    assert done("delete_experience", LOCAL, id=id_) == {"id": id_, "status": "deleted"}
    assert done("delete_experience", LOCAL, id=id_) == {"id": id_, "status": "deleted"}
    found = done("query_experiences", keywords="nginx 502")
    assert ([each["id"] for each in found["experiences"]], found["total"]) == ([other], 1)
    assert asked("get_experience", id=id_)["error"]["code"] == "NOT_FOUND"
    assert asked("update_experience", LOCAL, id=id_, title="x")["error"]["code"] == "NOT_FOUND"
    assert done("restore_experience", LOCAL, id=id_) == {"id": id_, "status": "published"}
    assert done("query_experiences", keywords="nginx 502")["total"] == 2


def test_the_deleted_are_not_shown_though_the_index_does_not_know(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [submitted(f"Postgres vacuum is slow, {number}", "It takes hours.") for number in range(6)]
    order = [each["id"] for each in done("query_experiences", keywords="postgres vacuum slow")["experiences"]]
    with monkeypatch.context() as away:
        away.setattr(finding, "_matcher", unavailable)
        done("delete_experience", LOCAL, id=order[1])
    first = done("query_experiences", keywords="postgres vacuum slow", limit=2)
    assert ([each["id"] for each in first["experiences"]], first["total"]) == ([order[0], order[2]], 5)
    assert set(order) == set(ids)


def unavailable() -> Any:
    raise Unavailable("The vector store is not answering.")


def test_an_update_is_found_as_it_is_now(store: str) -> None:
    id_ = submitted("Terraform state is locked", "Somebody holds it.", root_cause="A crash", context="v1")
    (before,) = done("query_experiences", keywords="terraform state is locked")["experiences"]
    assert before["id"] == id_
    changed = done("update_experience", LOCAL, id=id_, title="Helm release is stuck", root_cause=None, keywords=[])
    assert changed["title"] == "Helm release is stuck"
    assert "root_cause" not in changed
    assert (changed["context"], changed["created_at"] < changed["updated_at"]) == ("v1", True)
    assert "helm" in changed["keywords"]
    assert [each["id"] for each in done("query_experiences", keywords="helm release stuck")["experiences"]] == [id_]
    by_old_words = done("query_experiences", keywords="terraform state is locked")["experiences"]
    assert all(each["relevance_score"] < before["relevance_score"] / 2 for each in by_old_words)


def test_nearly_the_same_is_recorded_on_the_newer_and_both_are_kept(store: str) -> None:
    problem = "Reading the file raises UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0."
    solution = "Open the file with encoding='utf-16', as its byte order mark says, or convert it once with iconv."
    old = submitted("UnicodeDecodeError when reading a CSV file in Python", problem, solution)
    new = submitted("UnicodeDecodeError when reading CSV files in Python", problem, solution)
    other = submitted("UnicodeEncodeError when printing", "The console cannot show emoji.", "Set PYTHONIOENCODING.")
    assert done("get_experience", id=new)["similar_to"] == old
    assert all("similar_to" not in done("get_experience", id=id_) for id_ in (old, other))
    found = done("query_experiences", keywords="UnicodeDecodeError reading CSV in Python")["experiences"]
    assert {old, new} <= {each["id"] for each in found}


def test_what_nobody_can_read_is_not_named_while_it_is_deleted(store: str) -> None:
    problem = "The linker says that a symbol of libfoo is undefined, though the archive is on the command line."
    old, new = (submitted(f"Undefined symbol when linking {n} libfoo", problem) for n in ("with", "against"))
    assert done("get_experience", id=new)["similar_to"] == old
    done("delete_experience", LOCAL, id=old)
    assert "similar_to" not in done("get_experience", id=new)
    assert "similar_to" not in done("update_experience", LOCAL, id=new, keywords=["linker"])
    done("restore_experience", LOCAL, id=old)
    assert done("get_experience", id=new)["similar_to"] == old


@pytest.mark.parametrize(
    ("title", "problem", "wanted"),
    [
        ("React useState not updating", "The state of a React component stays stale.", {"react", "usestate"}),
        ("Kết nối PostgreSQL bị từ chối", "Không kết nối được từ Docker.", {"postgresql", "kết nối", "docker"}),
        ("数据库连接池耗尽", "高并发时数据库连接池耗尽。", {"数据库连接池耗尽"}),
    ],
)
def test_keywords_are_made_from_the_text_where_none_are_given(
    store: str, title: str, problem: str, wanted: set[str]
) -> None:
    none: list[dict[str, Any]] = [{}, {"keywords": []}, {"keywords": None}]
    for given_keywords in none:
        keywords = done("get_experience", id=submitted(title, problem, **given_keywords))["keywords"]
        assert wanted <= set(keywords)
        assert all(each == each.strip().lower() and 1 <= len(each) <= 100 for each in keywords)


@pytest.mark.usefixtures("counted")
def test_each_returned_record_is_counted_once_a_query(store: str) -> None:
    ids = [submitted(f"Grafana panel is empty {number}", "No data.") for number in range(60)]
    before = {id_: done("get_experience", id=id_)["updated_at"] for id_ in ids}
    returned = [
        each["id"]
        for limit, offset in ((50, 0), (50, 0), (10, 20))
        for each in done("query_experiences", keywords="grafana panel empty", limit=limit, offset=offset)["experiences"]
    ]
    assert counts(*ids) == [0] * 60
    keys = noted(store)
    assert len(keys) == 3
    event = records(*keys, *keys)
    for _ in range(2):  # delivered again, though all went well
        assert count_queries.handler(event, None) == {"batchItemFailures": []}
    assert noted(store) == []
    assert counts(*ids) == [returned.count(id_) for id_ in ids]
    for id_ in set(returned):
        assert done("get_experience", id=id_)["updated_at"] > before[id_]


@pytest.mark.usefixtures("counted")
def test_what_does_not_fit_through_a_door_is_refused_and_not_counted(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [submitted(f"Quoting is doubled {number}", "x" * 1000) for number in range(6)]
    monkeypatch.setattr("recall_kit.query_experiences.MAX_PAGE_BYTES", 5_000)
    answer = asked("query_experiences", keywords="quoting is doubled", limit=50)
    assert (answer["error"]["kind"], "limit" in answer["error"]["guidance"]) == ("TooLarge", True)
    assert noted(store) == []
    assert len(paged("quoting is doubled", 3)) == len(ids)


def test_secrets_are_refused_and_told_by_field_and_kind_alone(store: str, caplog: pytest.LogCaptureFixture) -> None:
    secret = "AKIA" + "Z7Q2M4X9K1T3B8WD"
    for field in ("title", "problem_description", "root_cause", "solution", "context"):
        answer = asked("submit_experience", ANONYMOUS, **PROBLEM | {field: f"use {secret} here"})
        assert [each["field"] for each in answer["error"]["details"]] == [field]
        assert "AWS" in answer["error"]["details"][0]["message"]
        assert answer["error"]["code"] == "CONTEXT_NOT_SANITIZED"
        assert secret not in json.dumps(answer) + caplog.text
    answer = asked("submit_experience", ANONYMOUS, **PROBLEM, keywords=[secret])
    assert [each["field"] for each in answer["error"]["details"]] == ["keywords"]
    id_ = submitted("Vault is sealed", "It asks for keys.")
    assert asked("update_experience", LOCAL, id=id_, context=secret)["error"]["code"] == "CONTEXT_NOT_SANITIZED"
    assert "context" not in done("get_experience", id=id_)


def test_who_is_no_writer_submits_so_many_a_minute_and_writers_more(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(time=lambda: 4_000_000_000.0)
    monkeypatch.setattr("shared.experiences.submissions.time", clock)
    few = replace(config(), anonymous_submissions_a_minute=3)
    monkeypatch.setattr("recall_kit.submit_experience.config", lambda: few)
    reader = Caller("reading", frozenset({"reader"}), "acme")
    writer = Caller("writing", frozenset({"writer"}), "acme")
    callers = (ANONYMOUS, reader, ANONYMOUS, reader, ANONYMOUS)
    answers = [asked("submit_experience", caller, **PROBLEM) for caller in callers]
    assert ["error" in answer for answer in answers] == [False, False, False, True, True]
    assert answers[-1]["error"]["code"] == "TOO_MANY_REQUESTS"
    assert "result" in asked("submit_experience", writer, **PROBLEM)
    clock.time = lambda: 4_000_000_060.0
    assert "result" in asked("submit_experience", ANONYMOUS, **PROBLEM)


def test_while_the_index_is_away_submitting_succeeds_and_the_stream_catches_up(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as away:
        away.setattr(finding, "_matcher", unavailable)
        id_ = submitted("Elasticsearch cluster is red", "Shards are unassigned.")
        event = records({"pk": {"S": f"content#{id_[:2]}"}, "sk": {"S": id_}})
        assert index_experiences.handler(event, None)["batchItemFailures"]
        assert asked("query_experiences", keywords="elasticsearch")["error"]["kind"] == "Unavailable"
    assert done("query_experiences", keywords="elasticsearch cluster red")["total"] == 0
    for _ in range(2):
        assert index_experiences.handler(event, None) == {"batchItemFailures": []}
    assert [each["id"] for each in done("query_experiences", keywords="elasticsearch red")["experiences"]] == [id_]


def test_who_ended_before_comparing_is_followed_by_the_stream(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, solution = "Assertion failed in the allocator after an upgrade of glibc.", "Build against the new glibc."
    old = submitted("Allocator assertion after glibc upgrade", problem, solution)
    with monkeypatch.context() as away:
        away.setattr(finding, "_compare", lambda *_: unavailable())
        new = submitted("Allocator assertion after a glibc upgrade", problem, solution)
    assert "similar_to" not in done("get_experience", id=new)
    recount([new])  # what it is counted for meanwhile says nothing of that
    event = records({"pk": {"S": f"content#{new[:2]}"}, "sk": {"S": new}})
    assert index_experiences.handler(event, None) == {"batchItemFailures": []}
    assert done("get_experience", id=new)["similar_to"] == old


def test_where_there_is_no_index_nothing_is_found_and_nothing_is_lost(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = replace(config(), qdrant_url="", qdrant_folder="")
    monkeypatch.setattr(finding, "_matcher", MATCHER)
    monkeypatch.setattr("recall_kit.finding.config", lambda: nowhere)
    assert done("get_experience", id=submitted("Mutex is poisoned"))["title"] == "Mutex is poisoned"
    assert asked("query_experiences", keywords="mutex")["error"]["kind"] == "Unavailable"


def test_an_index_that_was_behind_ranks_by_counts_as_they_are(store: str) -> None:
    first, second = (submitted(f"Jenkins agent offline {number}", "It is offline.") for number in "ab")
    for _ in range(40):
        Counting(table()).note([first])
    count_all(store)
    recount([first, second, "of an experience that is not there"])
    found = done("query_experiences", keywords="jenkins agent offline")["experiences"]
    assert [(each["id"], each["query_count"]) for each in found] == [(first, 40), (second, 0)]


def test_a_query_that_takes_too_long_is_a_timeout_at_each_door(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that took longer than a request has, before the query could note what it returns."""
    submitted("Cron job runs twice", "It runs on both nodes.")
    late = 0.0
    monkeypatch.setattr(
        "shared.telemetry.time", SimpleNamespace(perf_counter=lambda: time.perf_counter() + late, time=time.time)
    )

    def takes_long(**_: Any) -> None:
        nonlocal late
        late += REQUEST_SECONDS

    asked_by = {"keywords": "cron job runs twice"}
    single = {"jsonrpc": "2.0", "method": "recall-kit/query_experiences", "params": asked_by, "id": 1}
    events = client().meta.events
    events.register("before-call.dynamodb.BatchGetItem", takes_long)
    try:
        direct = query_experiences.handler(event(asked_by, path="/recall-kit/query_experiences"), None)
        monkeypatch.setattr(invoke, "_transport", [Functions(load().functions)])
        by_jsonrpc = said(jsonrpc.handler(event(single, path="/jsonrpc"), None))["result"]
    finally:
        events.unregister("before-call.dynamodb.BatchGetItem", takes_long)
    for answer in (said(direct), by_jsonrpc):
        assert (answer["success"], answer["error"]["code"]) == (False, "TIMEOUT")
    assert direct["statusCode"] == 504


def test_a_function_that_does_not_answer_is_a_timeout_too(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(function: str, _payload: bytes) -> bytes:
        raise TimeoutError(function)

    monkeypatch.setattr(invoke, "_transport", [silent])
    single = {"jsonrpc": "2.0", "method": "recall-kit/query_experiences", "params": {"keywords": "x"}, "id": 1}
    answer = said(jsonrpc.handler(event(single, path="/jsonrpc"), None))
    assert answer["result"]["error"]["code"] == "TIMEOUT"


def test_a_count_that_cannot_be_noted_is_a_database_error(store: str) -> None:
    """No answer is given that is not counted."""
    submitted("Flaky DNS in a pod", "Names fail now and then.")

    def fails(**_: Any) -> Any:
        return SimpleNamespace(status_code=500), {"Error": {"Code": "InternalServerError", "Message": "It failed."}}

    events = client().meta.events
    events.register("before-call.dynamodb.PutItem", fails)
    try:
        answer = said(query_experiences.handler(event({"keywords": "flaky DNS pod"}), None))
    finally:
        events.unregister("before-call.dynamodb.PutItem", fails)
    assert answer["error"]["code"] == "DATABASE_ERROR"
