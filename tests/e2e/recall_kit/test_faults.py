"""Counts stay exact and experiences are kept, whatever crashes, does not answer, is away or is lost."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.guarded import kho
from tests.e2e.recall_kit.doors import REQUIRED, Ask, http, jsonrpc, mcp
from tests.e2e.server import Server
from tests.helpers.wait import until
from tests.mcp import MODERN
from tests.qdrant import running_qdrant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


def counts(server: Server, ids: Iterable[str]) -> dict[str, int]:
    """Return how often each experience has been found."""
    ask = http(server)
    return {id_: ask("get_experience", id=id_)["data"]["query_count"] for id_ in ids}


def test_every_count_is_exact_after_many_queries_beside_submissions_and_a_crash(own: Server) -> None:
    """Each answer that was given is counted, though the server is killed while it counts."""
    ask = http(own)
    ids = [ask("submit_experience", **REQUIRED | {"title": f"Quasar build fails {n}"})["data"]["id"] for n in range(12)]
    submitted: list[str] = []

    def query(keywords: str, limit: int) -> list[str]:
        found = ask("query_experiences", keywords=keywords, limit=limit)["data"]["experiences"]
        return [each["id"] for each in found]

    def work(number: int) -> list[str]:
        if number % 20:
            return query("quasar build fails", number % 12 + 1)
        id_ = ask("submit_experience", **REQUIRED | {"title": f"Kestrel cache miss {number}"})["data"]["id"]
        submitted.append(id_)
        found = query(f"kestrel cache miss {number}", 50)
        assert id_ in found
        return found

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(work, range(300)))
    own.kill()
    own.start()
    expected = {id_: sum(answer.count(id_) for answer in answers) for id_ in [*ids, *submitted]}
    assert sum(expected.values()) > 1000
    until(lambda: counts(own, expected) == expected)


def test_a_store_that_does_not_answer_is_a_database_error_at_each_door(tmp_path: Path) -> None:
    with Server(tmp_path / "data", production_limits=True) as server:
        http(server)("submit_experience", **REQUIRED)
        until(lambda: http(server)("query_experiences", keywords="useState")["data"]["experiences"])
        doors = [http(server), jsonrpc(server), mcp(server, MODERN)]
        asked: list[tuple[Ask, str, dict[str, Any]]] = [
            call
            for door in doors
            for call in ((door, "submit_experience", REQUIRED), (door, "query_experiences", {"keywords": "useState"}))
        ]
        with server.stalled_store(), ThreadPoolExecutor(len(asked)) as pool:
            answers = list(pool.map(lambda call: call[0](call[1], **call[2]), asked))
        assert [each["error"]["code"] for each in answers] == ["DATABASE_ERROR"] * len(asked)
        assert all(each["success"] is False and each["error"]["message"] for each in answers)
        assert http(server)("query_experiences", keywords="useState")["success"]


def test_an_index_elsewhere_may_be_away_while_experiences_are_submitted(tmp_path: Path) -> None:
    with running_qdrant() as qdrant, Server(tmp_path / "data", environment={"KHO_QDRANT_URL": qdrant.url}) as server:
        ask = http(server)
        first = ask("submit_experience", **REQUIRED)["data"]["id"]
        found = ask("query_experiences", keywords="useState is not updated")["data"]["experiences"]
        assert [each["id"] for each in found] == [first]
        until(lambda: counts(server, [first]) == {first: 1})
        qdrant.stop()
        second = ask("submit_experience", **REQUIRED)["data"]["id"]
        assert ask("query_experiences", keywords="useState")["error"]["code"] == "DATABASE_ERROR"
        qdrant.start()

        def found_again() -> set[str]:
            answer = ask("query_experiences", keywords="useState")
            return {each["id"] for each in answer["data"]["experiences"]} if answer["success"] else set()

        until(lambda: found_again() == {first, second})
        assert ask("get_experience", id=second)["data"]["similar_to"] == first


def test_an_index_that_was_lost_is_made_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Server(data) as server:
        ask = http(server)
        id_, gone = (ask("submit_experience", **REQUIRED)["data"]["id"] for _ in range(2))
        ask("delete_experience", id=gone)
    shutil.rmtree(data / "passages")
    done = kho("reindex", "--data", str(data), "--collection", "experiences", "--json")
    assert json.loads(done.stdout) == {"indexed": 2, "unchanged": 0, "removed": 0}, done.stderr
    with Server(data) as server:
        found = http(server)("query_experiences", keywords="useState is not updated")["data"]
        assert [each["id"] for each in found["experiences"]] == [id_]
