"""Killed at random moments of many writes: what was acknowledged is whole, what was not is whole or absent."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import urllib3

from infra.local.environment import point_at_store, prepare
from infra.local.folder import serving
from infra.local.template import load
from shared import dynamodb
from shared.config import config
from tests.documents import assert_whole, stored
from tests.e2e.server import Server

if TYPE_CHECKING:
    from pathlib import Path

WRITES = int(os.environ.get("KHO_TEST_WRITES", "120"))
KILLS = max(2, WRITES // 60)
WRITERS = 4


class Writer:
    """Writes to documents of its own and to those of others, and keeps what was acknowledged and what was not."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(number)
        self.number = number
        self.count = 0
        self.acknowledged: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.unknown: list[dict[str, Any]] = []
        self.own = ["root"]

    def envelope(self) -> dict[str, Any]:
        """The next action."""
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
            # Next to nothing to embed, which would take the other tests' time.
            body = request_id + ("".join(self.chance.choices(" \t\n\r\f\v", k=250_000)) if large else "")
            action = "create_document"
            payload = {"document_id": request_id, "parent_id": document, "content": {"body": body}}
        principal = {"sub": f"writer-{self.number}", "tenant_id": "crashing"}
        return {"action": action, "request_id": request_id, "payload": payload, "principal": principal}

    def write(self, server: Server, number: int) -> None:
        """Make so many writes, unless the server goes."""
        for _ in range(number):
            envelope = self.envelope()
            try:
                response = server.post("/actions", json.dumps(envelope).encode())
                body = json.loads(response.data)
            except (urllib3.exceptions.HTTPError, OSError, ValueError):
                self.unknown.append(envelope)
                return
            if response.status == 200:
                self.acknowledged.append((envelope, body))
                if envelope["action"] == "create_document":
                    self.own.append(envelope["request_id"])
            elif response.status >= 500:
                self.unknown.append(envelope)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    chance = random.Random(7)
    with Server(tmp_path / "data") as server:
        writers = [Writer(number) for number in range(WRITERS)]
        for _ in range(KILLS):
            before = sum(len(writer.acknowledged) for writer in writers)
            enough = before + chance.randrange(WRITES // KILLS)
            with ThreadPoolExecutor(WRITERS + 1) as pool:
                running = [pool.submit(writer.write, server, WRITES) for writer in writers]
                killing = threading.Thread(target=_kill_after, args=(server, writers, enough, chance.random() * 0.02))
                killing.start()
                for each in running:
                    each.result()
                killing.join()
            server.start()
            _assert_kept(server, writers)
        assert sum(len(writer.acknowledged) for writer in writers) > KILLS


def _kill_after(server: Server, writers: list[Writer], enough: int, seconds: float) -> None:
    deadline = time.monotonic() + 60
    while sum(len(writer.acknowledged) for writer in writers) < enough and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(seconds)
    server.kill()


def _assert_kept(server: Server, writers: list[Writer]) -> None:
    running = serving(server.data)
    assert running
    prepare(load(), auth="open")
    point_at_store(running["store_url"])
    config.cache_clear()
    dynamodb.use(None)
    assert_whole("crashing")
    items = stored("crashing")
    for writer in writers:
        for envelope, body in writer.acknowledged:
            document = items[f"document#{envelope['payload']['document_id']}"]
            entry = document[f"history#{body['revision']:012d}"]
            assert (entry["request_id"], entry["action"]) == (envelope["request_id"], envelope["action"])
            answer = json.loads(items[f"request#{envelope['request_id']}"][envelope["action"]]["answer"])
            assert answer["revision"] == body["revision"]
            _assert_body(server, envelope, body)
        for envelope in writer.unknown:
            _assert_whole_or_absent(items, envelope)
    dynamodb.use(None)


def _assert_body(server: Server, envelope: dict[str, Any], body: dict[str, Any]) -> None:
    """An acknowledged request, sent again, gets its answer again; what it created has the body it was given."""
    response = server.post("/actions", json.dumps(envelope).encode())
    assert json.loads(response.data) == body | {"replayed": True}
    if envelope["action"] == "create_document":
        asked = {"document_id": envelope["payload"]["document_id"], "revision": 1}
        get = envelope | {"action": "get_document", "payload": asked}
        document = json.loads(server.post("/actions", json.dumps(get).encode()).data)
        assert document["content"]["body"] == envelope["payload"]["content"]["body"]


def _assert_whole_or_absent(items: Any, envelope: dict[str, Any]) -> None:
    """An unacknowledged request was carried out with its audit entry and its answer, or not at all."""
    recorded = envelope["action"] in items.get(f"request#{envelope['request_id']}", {})
    history = [
        item
        for sk, item in items.get(f"document#{envelope['payload']['document_id']}", {}).items()
        if sk.startswith("history#") and item.get("request_id") == envelope["request_id"]
    ]
    assert len(history) == int(recorded)
