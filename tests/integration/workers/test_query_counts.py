"""Counts are exact despite repeated deliveries, concurrent counters and crashed workers."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from shared.aws.dynamodb import Table, Write
from shared.experiences import keys, query_counts
from shared.experiences.query_counts import QueryCounts
from shared.experiences.repository import experiences_table
from shared.platform.config import config
from shared.rpc.errors import Unavailable
from tests.helpers.size import sized
from tests.helpers.store_faults import conflicting_transactions, failing_transactions_from
from tests.helpers.stream_deliveries import deliver, letters_of, stream_record
from workers import count_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Noted = list[tuple[str, str]]


def served(*answers: Sequence[str]) -> Noted:
    """Return the keys of the records that queries with these answers have left."""
    before = remaining_keys()
    for ids in answers:
        QueryCounts(experiences_table()).record_result(ids)
    return sorted(remaining_keys() - before)


def remaining_keys() -> set[tuple[str, str]]:
    return {(item["pk"], item["sk"]) for page in experiences_table().scan("served#") for item in page}


def count(noted: Noted) -> set[str]:
    failed: set[str] = set()
    QueryCounts(experiences_table()).count(noted, failed.update)
    return failed


def counted(ids: Sequence[str]) -> Counter[str]:
    items = Table(config().experiences_table).get_all(keys.query_counter(id_) for id_ in ids)
    return Counter({item["sk"]: int(item["query_count"]) for item in items})


@pytest.fixture
def ids(store: str) -> list[str]:
    return [str(uuid4()) for _ in range(50)]


def test_counts_of_one_query_are_batched(ids: list[str]) -> None:
    noted = served(ids, ids[:10], ids[:1])
    assert count(noted) == set(ids)
    assert counted(ids) == Counter(ids) + Counter(ids[:10]) + Counter(ids[:1])
    assert not remaining_keys() & set(noted)


def test_repeated_delivery_counts_once(ids: list[str]) -> None:
    noted = served(*[ids[:3]] * 20)
    count(noted * 2)
    count(noted)
    assert counted(ids) == Counter(dict.fromkeys(ids[:3], 20))


def test_result_that_cannot_be_counted_keeps_no_other_from_it(ids: list[str]) -> None:
    """One damaged record of a batch is given up; the others are counted once."""
    noted = served(ids[:3], ids[:3])
    damaged = keys.query_result(str(uuid4()))
    experiences_table().write(Write("Put", {"pk": damaged[0], "sk": damaged[1]}))
    records = [stream_record(*each, number=number) for number, each in enumerate([noted[0], damaged, noted[1]])]
    assert [deliver(count_queries.handler, *records) for _ in range(3)] == [["1"], ["1"], []]
    assert counted(ids) == Counter(dict.fromkeys(ids[:3], 2))
    assert [(each.method, each.pk) for each in letters_of(damaged[0])] == [("workers/count_queries", damaged[0])]
    experiences_table().delete_all([damaged])


@pytest.mark.stress
def test_concurrent_workers_count_once(
    ids: list[str], monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    """Eight workers that count the same queries concurrently count each of them once."""
    monkeypatch.setattr(query_counts, "_ATTEMPTS", 1000)  # one worker may lose to the others many times
    queries = sized(40, full=400)
    answers = [random.Random(number).sample(ids, 5) for number in range(queries)]
    noted = served(*answers)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, [random.Random(number).sample(noted, queries // 2) for number in range(8)]))
    count(noted)
    assert counted(ids) == Counter(id_ for answer in answers for id_ in answer)
    record_property("load", f"8 workers, {queries:,} queries, each brought to about four workers")
    record_property("outcome", "0 lost, 0 counted twice")
    assert not remaining_keys() & set(noted)


def test_transaction_conflict_is_retried(ids: list[str]) -> None:
    noted = served(ids)
    with conflicting_transactions(3) as met:
        count(noted)
    assert met == [3]
    assert counted(ids) == Counter(ids)


def test_crash_before_counting_counts_nothing(ids: list[str]) -> None:
    noted = served(*[ids] * 120)  # more than fits into two transactions
    with failing_transactions_from(3), pytest.raises(Unavailable):
        count(noted)
    assert 0 < counted(ids)[ids[0]] < 120
    count(noted)
    assert counted(ids) == Counter(ids * 120)


def test_crash_after_counting_updates_the_index_on_retry(ids: list[str]) -> None:
    noted = served(ids[:4])

    def die(_: set[str]) -> None:
        raise Unavailable

    with pytest.raises(Unavailable):
        QueryCounts(experiences_table()).count(noted, die)
    assert counted(ids) == Counter(ids[:4])
    assert remaining_keys() >= set(noted)
    assert count(noted) == set(ids[:4])
    assert counted(ids) == Counter(ids[:4])
    assert not remaining_keys() & set(noted)
