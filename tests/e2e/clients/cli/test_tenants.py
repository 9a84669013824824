"""`kho tenant` exports or deletes all data of one tenant, and no data of another."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.dynamodb import Engine, connect
from infra.local.environment import prepare
from infra.local.template import load
from shared.aws import dead_letters
from tests.helpers.api_client import ApiClient, make_key, run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.oauth_person import Person

if TYPE_CHECKING:
    from pathlib import Path

LARGE = "Đây là một tài liệu dài." + "".join(random.Random(1).choices(" \t\n\r\f\v", k=500_000))
"""Several items of the store, with little to embed."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data of two tenants with similar content. One tenant's name is a prefix of the other's."""
    folder: Path = tmp_path_factory.mktemp("tenants") / "data"
    with KhoServer(folder, "--auth", "required") as server:
        for tenant in ("acme", "acme-2"):
            key = make_key(folder, tenant, "writer")["key"]
            fill(ApiClient(server, key), tenant)
            client = Person(server).client
            client.register()
            client.tokens(key)
    return folder


def fill(client: ApiClient, tenant: str) -> None:
    created = [
        {"document_id": "kept", "parent_id": "root", "content": {"mime_type": "text/markdown", "body": LARGE}},
        {"document_id": "gone", "parent_id": "kept", "content": {"mime_type": "text/plain", "body": f"by {tenant}"}},
    ]
    calls: list[tuple[str, dict[str, Any]]] = [("agent-data/create_document", each) for each in created]
    calls.append(("agent-data/delete_document", {"document_id": "gone"}))
    calls += [
        ("memory-server/memory/add_message", {"conversation_id": "c", "role": "user", "content": f"{tenant} {number}"})
        for number in range(3)
    ]
    calls.append(("memory-server/memory/set_summary", {"conversation_id": "c", "summary": "three"}))
    calls.append(("research-agent/manage_collections", {"action": "create", "collection_name": "notes"}))
    calls.append(("research-agent/augment_knowledge", {"collection": "notes", "source": "s", "content": f"# {tenant}"}))
    for method, params in calls:
        status, answer = client.direct(method, **params)
        assert status == 200, answer


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def partitions(data: Path) -> set[str]:
    """Return the prefixes of all keys in all tables."""
    prepare(load(), data, auth="open")
    engine = Engine(data / "dynamodb.sqlite", data / "store.log")
    try:
        with connect(engine.url) as client:
            return {
                item["pk"]["S"].partition("#")[0]
                for table in load().tables
                for item in client.scan(TableName=table.name)["Items"]
            }
    finally:
        engine.close()


def test_export_contains_all_data_of_one_tenant(data: Path, tmp_path: Path) -> None:
    done = run_kho("tenant", "export", "acme", "--to", str(tmp_path / "out"), "--data", str(data))
    assert done.returncode == 0, done.stderr
    documents = {each["document_id"]: each for each in lines(tmp_path / "out" / "documents.jsonl")}
    assert documents["kept"]["content"] == {"mime_type": "text/markdown", "body": LARGE}
    assert documents["gone"]["content"]["body"] == "by acme"
    (conversation,) = lines(tmp_path / "out" / "conversations.jsonl")
    assert [item["content"] for item in conversation["messages"] if "content" in item] == [
        f"acme {n}" for n in range(3)
    ]
    (text,) = lines(tmp_path / "out" / "knowledge.jsonl")
    assert (text["collection"], text["text"]) == ("notes", "# acme")
    items = lines(tmp_path / "out" / "items.jsonl")
    assert {each["item"]["pk"].partition("#")[0] for each in items} == {"acme"}
    tables = ("Access", "Documents", "Memory", "Knowledge")
    assert {each["table"] for each in items} >= {f"kho-{table}Table" for table in tables}


def test_erase_removes_all_data_of_one_tenant(data: Path, tmp_path: Path) -> None:
    letters = data / dead_letters.FILE_NAME
    given_up = [
        dead_letters.DeadLetter(tenant, "workers/ingest", "CRASHED", "", pk=f"{tenant}#work")
        for tenant in ("acme", "acme-2")
    ]
    letters.write_text("".join(f"{json.dumps(asdict(each))}\n" for each in given_up))
    refused = run_kho("tenant", "erase", "acme", "--data", str(data))
    assert refused.returncode == 1
    assert "acme" in partitions(data)
    done = run_kho("tenant", "erase", "acme", "--data", str(data), "--yes")
    assert done.returncode == 0, done.stderr
    assert "and 1 keys of acme" in done.stdout
    assert "acme" not in partitions(data)
    assert "acme-2" in partitions(data)
    assert dead_letters.read(letters) == given_up[1:]
    remaining = json.loads(run_kho("keys", "list", "--data", str(data), "--json").stdout)["keys"]
    assert [each["tenant_id"] for each in remaining] == ["acme-2"]
    run_kho("tenant", "export", "acme", "--to", str(tmp_path / "again"), "--data", str(data))
    assert not lines(tmp_path / "again" / "items.jsonl")
    with KhoServer(data, "--auth", "required") as server:
        hits = search(ApiClient(server, make_key(data, "acme-2", "reader")["key"]))
        assert [each["content"] for each in hits] == ["# acme-2"]
        recreated = ApiClient(server, make_key(data, "acme", "writer")["key"])
        recreated.direct("research-agent/manage_collections", action="create", collection_name="notes")
        assert search(recreated) == []


def search(client: ApiClient) -> list[dict[str, Any]]:
    status, answer = client.direct("research-agent/query_knowledge_base", query="acme", collections="notes")
    assert status == 200, answer
    results: list[dict[str, Any]] = answer["results"]
    return results


def test_erase_uses_the_running_servers_index(data: Path) -> None:
    with KhoServer(data, "--auth", "required"):
        done = run_kho("tenant", "erase", "acme-2", "--data", str(data), "--yes")
    assert done.returncode == 1
    assert "stop it first" in done.stderr
    assert "acme-2" in partitions(data)
