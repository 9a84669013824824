"""The local engine's stream records: they do not slow writers, and expire in time."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from infra.local.dynamodb import Engine, create_tables, index_and_trim
from infra.local.streams import forget_former_readers
from infra.local.template import load
from tests.helpers.dynamodb import boto3_client, tcp_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infra.local.template import TableDefinition

DAY = 24 * 3600


class Store:
    """An engine on its own folder, with two tables."""

    def __init__(self, folder: Path, tables: list[TableDefinition]) -> None:
        self._file = folder / "dynamodb.sqlite"
        self._engine = Engine(self._file, folder / "store.log")
        self._client: Any = boto3_client(self._engine.url)
        create_tables(self._engine.url, tables)
        settings = Config(parameter_validation=False)
        self._streams: Any = boto3.client("dynamodbstreams", endpoint_url=tcp_url(self._engine.url), config=settings)

    def put(self, table: str, *names: str) -> None:
        for name in names:
            self._client.put_item(TableName=table, Item={"pk": {"S": "p"}, "sk": {"S": name}})

    def changes(self, table: str, after: str = "") -> dict[str, str]:
        """Return the sort keys of the changes, by their sequence numbers."""
        (stream,) = self._streams.list_streams(TableName=table)["Streams"]
        arn = stream["StreamArn"]
        (shard,) = self._streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        kind = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after} if after else {}
        params = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"} | kind
        records = self._streams.get_records(ShardIterator=self._streams.get_shard_iterator(**params)["ShardIterator"])
        return {each["dynamodb"]["SequenceNumber"]: each["dynamodb"]["Keys"]["sk"]["S"] for each in records["Records"]}

    def close(self) -> None:
        self._engine.close()


@contextmanager
def running(folder: Path, tables: list[TableDefinition]) -> Iterator[Store]:
    with ExitStack() as stack:
        store = Store(folder, tables)
        stack.callback(store.close)
        yield store


@pytest.fixture(scope="module")
def tables() -> list[TableDefinition]:
    return [each for each in load().tables if each.name.endswith(("-MemoryTable", "-KnowledgeTable"))]


def aged(folder: Path, days: int, names: tuple[str, ...] = ()) -> None:
    """Backdate the changes of those items, or of all, by so many days."""
    with closing(sqlite3.connect(folder / "dynamodb.sqlite")) as database, database:
        which = " OR ".join(["keys_json LIKE ?"] * len(names)) or "1"
        marks = [f'%"{name}"%' for name in names]
        database.execute(
            f"UPDATE _stream_records SET created_at = ? WHERE {which}", [int(time.time()) - days * DAY, *marks]
        )


def test_changes_older_than_a_week_are_trimmed_except_the_last(tmp_path: Path, tables: list[TableDefinition]) -> None:
    one, other = (each.name for each in tables)
    with running(tmp_path, tables) as store:
        store.put(one, "a", "b", "c", "d")
        store.put(other, "x", "y")
        before = store.changes(one)
    aged(tmp_path, 8, ("a", "b", "x", "y"))
    aged(tmp_path, 6, ("c",))
    with running(tmp_path, tables) as store:
        assert list(store.changes(one).values()) == ["c", "d"]
        assert list(store.changes(other).values()) == ["y"]
    aged(tmp_path, 8)
    with running(tmp_path, tables) as store:
        assert list(store.changes(one).values()) == ["d"]
        store.put(one, "e")
        assert list(store.changes(one, after=list(before)[-1]).values()) == ["e"], "numbers go on"


def test_reads_and_writes_use_the_change_index(tmp_path: Path, tables: list[TableDefinition]) -> None:
    params = [
        "SELECT MAX(CAST(sequence_number AS INTEGER)) FROM _stream_records WHERE table_name = 't'",
        "SELECT * FROM _stream_records WHERE table_name = 't' AND shard_id = 's'"
        " AND CAST(sequence_number AS INTEGER) > 5 ORDER BY CAST(sequence_number AS INTEGER) LIMIT 9",
    ]
    for _ in range(2):
        with running(tmp_path, tables), closing(sqlite3.connect(tmp_path / "dynamodb.sqlite")) as database:
            plans = [database.execute(f"EXPLAIN QUERY PLAN {each}").fetchall() for each in params]
        assert [len(plan) for plan in plans] == [1, 1], "nothing is sorted"
        assert all("USING INDEX kho_changes" in plan[0][3] for plan in plans)


def test_unknown_schema_is_left_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "dynamodb.sqlite"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE _stream_records (id, number)")
    before = file.read_bytes()
    index_and_trim(file)
    assert file.read_bytes() == before
    file.write_bytes(b"no database, " * 100)
    index_and_trim(file)
    assert file.read_bytes() == b"no database, " * 100


def test_changes_that_a_reader_has_yet_to_process_stay_whatever_their_age(
    tmp_path: Path, tables: list[TableDefinition]
) -> None:
    """A machine that starts in 1970 dates them so, and its server may be killed before they are read."""
    one, other = (each.name for each in tables)
    with running(tmp_path, tables) as store:
        store.put(one, "a", "b", "c", "d")
        store.put(other, "x", "y")
        numbers = list(store.changes(one))
    aged(tmp_path, 20_000)
    shard = f"arn:aws:dynamodb:dynoxide:000000000000:table/{one}/stream/1/shardId-00000001-{one}"
    (tmp_path / "stream-workers-quick.json").write_text(json.dumps({shard: numbers[2]}))
    (tmp_path / "stream-workers-slow.json").write_text(json.dumps({shard: numbers[0]}))
    with running(tmp_path, tables) as store:
        assert list(store.changes(one).values()) == ["b", "c", "d"]
        assert list(store.changes(other).values()) == ["y"]
    forget_former_readers(tmp_path, ["workers-quick"])
    with running(tmp_path, tables) as store:
        assert list(store.changes(one).values()) == ["d"]
