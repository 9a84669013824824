"""Counts stay exact and experiences are kept through crashes, timeouts, outages and losses."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.api_client import run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.mcp_events import MODERN
from tests.helpers.qdrant_server import running_qdrant
from tests.helpers.recall_kit_endpoints import REQUIRED, Ask, call_http, call_jsonrpc, call_mcp
from tests.helpers.size import sized
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

QUERIES = sized(48, full=300)
AT_ONCE = 16


@pytest.fixture
def own(tmp_path: Path) -> Iterator[KhoServer]:
    with KhoServer(tmp_path / "data") as server:
        yield server


def counts(server: KhoServer, ids: Iterable[str]) -> dict[str, int]:
    """Return the count of each experience."""
    ask = call_http(server)
    return {id_: ask("get_experience", id=id_)["data"]["query_count"] for id_ in ids}


@pytest.mark.stress
def test_query_counts_are_exact_after_concurrent_submissions_and_a_crash(
    own: KhoServer, record_property: Callable[[str, object], None]
) -> None:
    """Every answer given is counted, even if the server is killed while it counts."""
    ask = call_http(own)
    ids = [ask("submit_experience", **REQUIRED | {"title": f"Quasar build fails {n}"})["data"]["id"] for n in range(12)]
    submitted: list[str] = []

    def query(keywords: str, limit: int) -> list[str]:
        experiences = ask("query_experiences", keywords=keywords, limit=limit)["data"]["experiences"]
        return [each["id"] for each in experiences]

    def work(number: int) -> list[str]:
        if number % 20:
            return query("quasar build fails", number % 12 + 1)
        id_ = ask("submit_experience", **REQUIRED | {"title": f"Kestrel cache miss {number}"})["data"]["id"]
        submitted.append(id_)
        experiences = query(f"kestrel cache miss {number}", 50)
        assert id_ in experiences
        return experiences

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(work, range(QUERIES)))
    own.kill()
    own.start()
    expected = {id_: sum(answer.count(id_) for answer in answers) for id_ in [*ids, *submitted]}
    assert sum(expected.values()) > 10 * QUERIES // 3
    until(lambda: counts(own, expected) == expected)
    record_property("load", f"{QUERIES} queries with {len(submitted)} submissions, {AT_ONCE} at once, then `kill -9`")
    record_property("outcome", f"all {sum(expected.values())} results counted")


def test_unresponsive_store_is_a_database_error_at_each_endpoint(tmp_path: Path) -> None:
    with KhoServer(tmp_path / "data", production_limits=True) as server:
        call_http(server)("submit_experience", **REQUIRED)
        until(lambda: call_http(server)("query_experiences", keywords="useState")["data"]["experiences"])
        callers = [call_http(server), call_jsonrpc(server), call_mcp(server, MODERN)]
        calls: list[tuple[Ask, str, dict[str, Any]]] = [
            call
            for ask in callers
            for call in ((ask, "submit_experience", REQUIRED), (ask, "query_experiences", {"keywords": "useState"}))
        ]
        with server.stalled_store(), ThreadPoolExecutor(len(calls)) as pool:
            answers = list(pool.map(lambda call: call[0](call[1], **call[2]), calls))
        assert [each["error"]["code"] for each in answers] == ["DATABASE_ERROR"] * len(calls)
        assert all(each["success"] is False and each["error"]["message"] for each in answers)
        assert call_http(server)("query_experiences", keywords="useState")["success"]


def test_submission_succeeds_while_the_remote_index_is_down(tmp_path: Path) -> None:
    with running_qdrant() as qdrant, KhoServer(tmp_path / "data", environment={"KHO_QDRANT_URL": qdrant.url}) as server:
        ask = call_http(server)
        first = ask("submit_experience", **REQUIRED)["data"]["id"]
        experiences = ask("query_experiences", keywords="useState is not updated")["data"]["experiences"]
        assert [each["id"] for each in experiences] == [first]
        until(lambda: counts(server, [first]) == {first: 1})
        qdrant.stop()
        second = ask("submit_experience", **REQUIRED)["data"]["id"]
        assert ask("query_experiences", keywords="useState")["error"]["code"] == "DATABASE_ERROR"
        qdrant.start()

        def found_again() -> set[str]:
            answer = ask("query_experiences", keywords="useState")
            return {each["id"] for each in answer["data"]["experiences"]} if answer["success"] else set()

        until(lambda: found_again() == {first, second})
        until(lambda: ask("get_experience", id=second)["data"].get("similar_to") == first)


def test_lost_index_is_rebuilt(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with KhoServer(data) as server:
        ask = call_http(server)
        id_, deleted_id = (ask("submit_experience", **REQUIRED)["data"]["id"] for _ in range(2))
        ask("delete_experience", id=deleted_id)
    shutil.rmtree(data / "passages")
    done = run_kho("reindex", "--data", str(data), "--json")
    assert json.loads(done.stdout) == {"indexed": 2, "unchanged": 0, "removed": 0}, done.stderr
    with KhoServer(data) as server:
        experiences = call_http(server)("query_experiences", keywords="useState is not updated")["data"]
        assert [each["id"] for each in experiences["experiences"]] == [id_]
