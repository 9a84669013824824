"""Kill -9 of a server under writers of documents, messages and experiences."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
import urllib3

from infra.local.data_folder import read_server_info
from infra.local.environment import point_at_store, prepare
from infra.local.template import load
from shared.aws import dynamodb
from shared.platform.config import config
from shared.platform.runtime import runtime
from tests.helpers.document_agent import assert_consistent_tree, stored_items
from tests.helpers.dynamodb import boto3_client
from tests.helpers.kho_server import KhoServer
from tests.helpers.size import sized
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from types_boto3_dynamodb import DynamoDBClient

KILLS: Final = sized(1, full=100)
TENANT: Final = "crashing"
MEMORY: Final = "memory-server/memory"


class DocumentWriter:
    """A writer of documents, with the requests that were acknowledged and those that were not."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(number)
        self.number = number
        self.count = 0
        self.count_checked = 0
        self.acknowledged: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.unknown: list[dict[str, Any]] = []
        self.own = ["root"]

    def envelope(self) -> dict[str, Any]:
        """Return the next action."""
        self.count += 1
        request_id = f"w{self.number}-{self.count}"
        document = self.chance.choice(self.own)
        action, payload = self.chance.choice(
            [
                ("update_document", {"document_id": document, "patch": {"metadata": {"by": request_id}}}),
                ("move_document", {"document_id": document, "new_parent_id": self.chance.choice(self.own)}),
            ]
        )
        if document == "root" or self.chance.random() < 0.5:
            large = self.chance.random() < 0.2
            # Almost nothing to embed, to keep the tests fast.
            body = request_id + ("".join(self.chance.choices(" \t\n\r\f\v", k=250_000)) if large else "")
            action = "create_document"
            payload = {"document_id": request_id, "parent_id": document, "content": {"body": body}}
        principal = {"sub": f"writer-{self.number}", "tenant_id": TENANT}
        return {"action": action, "request_id": request_id, "payload": payload, "principal": principal}

    def write(self, server: KhoServer) -> None:
        """Send one request."""
        envelope = self.envelope()
        try:
            response = server.post("/actions", json.dumps(envelope).encode())
            body = json.loads(response.data)
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            self.unknown.append(envelope)
            raise
        if response.status == 200:
            self.acknowledged.append((envelope, body))
            if envelope["action"] == "create_document":
                self.own.append(envelope["request_id"])
        elif response.status >= 500:
            self.unknown.append(envelope)

    def check(self, server: KhoServer, items: Any) -> None:
        """Assert that acknowledged requests are whole, and others whole or absent. Then start a new list of them."""
        for envelope, body in self.acknowledged:
            document = items[f"document#{envelope['payload']['document_id']}"]
            entry = document[f"history#{body['revision']:012d}"]
            assert (entry["request_id"], entry["action"]) == (envelope["request_id"], envelope["action"])
            answer = json.loads(items[f"request#{envelope['request_id']}"][envelope["action"]]["answer"])
            assert answer["revision"] == body["revision"]
            _assert_body(server, envelope, body)
        for envelope in self.unknown:
            _assert_whole_or_absent(items, envelope)
        self.count_checked += len(self.acknowledged)
        self.acknowledged.clear()
        self.unknown.clear()


class MessageWriter:
    """A writer of numbered messages to a conversation that it shares with the others."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0
        self.count_checked = 0
        self.acknowledged: list[str] = []
        self.unknown: list[str] = []

    def write(self, server: KhoServer) -> None:
        """Add one message."""
        self.count += 1
        content = f"{self.number}:{self.count}"
        try:
            server.call(f"{MEMORY}/add_message", conversation_id="killed", role="user", content=content)
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            self.unknown.append(content)
            raise
        self.acknowledged.append(content)

    def check(self, contents: list[str]) -> None:
        """Assert that acknowledged messages are there once and in their order, and others once or not at all."""
        own = [content for content in contents if content.startswith(f"{self.number}:")]
        everything = sorted([*self.acknowledged, *self.unknown], key=lambda content: int(content.partition(":")[2]))
        assert set(self.acknowledged) <= set(own)
        assert own == [content for content in everything if content in own]
        self.count_checked = len(self.acknowledged)


class ExperienceWriter:
    """A writer of experiences."""

    def __init__(self) -> None:
        self.count = 0
        self.count_checked = 0
        self.acknowledged: dict[str, str] = {}
        self.unknown: set[str] = set()

    def write(self, server: KhoServer) -> None:
        """Submit one experience."""
        self.count += 1
        title = f"Killed for the time {self.count}"
        try:
            answer = server.call("recall-kit/submit_experience", title=title, problem_description="x", solution="y")
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            self.unknown.add(title)
            raise
        self.acknowledged[answer["data"]["id"]] = title

    def check(self, titles: dict[str, str]) -> None:
        """Assert that acknowledged experiences are there once, and others once or not at all."""
        assert self.acknowledged.items() <= titles.items()
        others = [title for id_, title in titles.items() if id_ not in self.acknowledged]
        assert len(others) == len(set(others))
        assert set(others) <= self.unknown
        self.count_checked = len(self.acknowledged)


@pytest.mark.stress
def test_acknowledged_writes_survive_kill_9(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """Nothing that was acknowledged is lost, doubled or reordered when the server is killed at random moments."""
    chance = random.Random(7)
    documents = [DocumentWriter(number) for number in range(2)]
    messages = [MessageWriter(number) for number in range(2)]
    experiences = ExperienceWriter()
    writers: list[DocumentWriter | MessageWriter | ExperienceWriter] = [*documents, *messages, experiences]
    with KhoServer(tmp_path / "data") as server:
        for _ in range(KILLS):
            enough = sum(writer.count for writer in writers) + chance.randrange(10, 60)
            with ThreadPoolExecutor(len(writers)) as pool:
                running = [pool.submit(_write_until_killed, writer, server) for writer in writers]
                until(lambda: sum(writer.count for writer in writers) >= enough)  # noqa: B023 - awaited in this round
                server.kill()
                for ended in running:
                    ended.result()
            server.start()
            with _store_of(server) as client:
                assert_consistent_tree(TENANT)
                items = stored_items(TENANT)
                for writer in documents:
                    writer.check(server, items)
                experiences.check(_titles(client))
            contents = _messages(server)
            for sender in messages:
                sender.check(contents)
    counts = {
        "document writes": sum(each.count_checked for each in documents),
        "messages": sum(each.count_checked for each in messages),
        "experiences": experiences.count_checked,
    }
    summary = ", ".join(f"{count} {name}" for name, count in counts.items())
    record_property("load", f"{KILLS} x kill -9 under 2 document writers, 2 message writers and 1 experience writer")
    record_property("outcome", f"of {summary} acknowledged, none lost, doubled or reordered")


def _write_until_killed(writer: DocumentWriter | MessageWriter | ExperienceWriter, server: KhoServer) -> None:
    while True:
        try:
            writer.write(server)
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            return


@contextmanager
def _store_of(server: KhoServer) -> Iterator[DynamoDBClient]:
    """Point this process at the store of the server."""
    running = read_server_info(server.data)
    assert running
    environment = runtime.environment
    try:
        prepare(load(), server.data, auth="open")
        point_at_store(running["store_url"])
        dynamodb.override_client(None)
        yield boto3_client(running["store_url"])
    finally:
        runtime.environment = environment
        config.cache_clear()
        dynamodb.override_client(None)


def _messages(server: KhoServer) -> list[str]:
    """Return the content of all messages, page by page."""
    contents: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = server.call(f"{MEMORY}/get_all_messages", conversation_id="killed", **cursor)
        contents += [each["content"] for each in page["messages"]]
        if "next_cursor" not in page:
            return contents
        cursor = {"cursor": page["next_cursor"]}


def _titles(client: DynamoDBClient) -> dict[str, str]:
    """Return the titles of all experiences in the store, by their ids."""
    pages = client.get_paginator("scan").paginate(TableName="kho-ExperiencesTable")
    items = [item for page in pages for item in page["Items"] if "title" in item]
    return {item["sk"]["S"]: item["title"]["S"] for item in items}


def _assert_body(server: KhoServer, envelope: dict[str, Any], body: dict[str, Any]) -> None:
    """Check that an acknowledged request, sent again, gets its answer again and that its document has the sent body."""
    response = server.post("/actions", json.dumps(envelope).encode())
    assert json.loads(response.data) == body | {"replayed": True}
    if envelope["action"] == "create_document":
        params = {"document_id": envelope["payload"]["document_id"], "revision": 1}
        get = envelope | {"action": "get_document", "payload": params}
        document = json.loads(server.post("/actions", json.dumps(get).encode()).data)
        assert document["content"]["body"] == envelope["payload"]["content"]["body"]


def _assert_whole_or_absent(items: Any, envelope: dict[str, Any]) -> None:
    """Check that an unacknowledged request was carried out with its audit entry and its answer, or not at all."""
    recorded = f"request#{envelope['request_id']}" in items
    history = [
        item
        for sk, item in items.get(f"document#{envelope['payload']['document_id']}", {}).items()
        if sk.startswith("history#") and item.get("request_id") == envelope["request_id"]
    ]
    assert len(history) == int(recorded)
