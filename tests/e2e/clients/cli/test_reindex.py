"""`kho reindex` restores the index from DynamoDB after any loss or change."""

from __future__ import annotations

import json
import shutil
import zlib
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from boto3.dynamodb.types import TypeSerializer

from infra.local.template import load
from shared.aws.dynamodb import to_item
from shared.documents.unit_of_work import DocumentHead
from shared.search.passages import SPLITTER
from shared.search.store import INTEGERS, KEYWORDS
from tests.helpers.api_client import run_kho
from tests.helpers.aws_stack import ENVIRONMENT, running_aws_stack
from tests.helpers.kho_server import KhoServer
from tests.helpers.qdrant_server import QdrantServer, running_qdrant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FERNS = "Ferns are watered at dawn."


def run_reindex(data: Path, *options: str, environment: dict[str, str] | None = None) -> dict[str, int]:
    done = run_kho("reindex", "--data", str(data), "--json", *options, environment=environment)
    assert done.returncode == 0, done.stderr
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def write(server: KhoServer) -> None:
    """Write two documents, one deleted, two documents of a collection, and a conversation."""
    for text in ("Who waters the ferns?", FERNS):
        server.call("memory-server/memory/add_message", conversation_id="chat", role="user", content=text)
    for name in ("a", "b", "gone"):
        content = {"mime_type": "text/plain", "body": FERNS}
        server.call("agent-data/create_document", document_id=name, parent_id="root", content=content)
    server.call("agent-data/delete_document", document_id="gone")
    server.call("research-agent/manage_collections", action="create", collection_name="notes")
    documents = [{"path": path, "content": f"{FERNS} Says {path}."} for path in ("a.md", "b.md")]
    server.call("research-agent/ingest_documents", collection="notes", documents=documents)


def search_all(server: KhoServer) -> tuple[set[str], set[str], set[int]]:
    """Return the documents, those of the collection, and the messages that a search finds."""
    question = "When are ferns watered?"
    documents = server.call("agent-data/query_knowledge", query=question, top_k=20)["context"]
    notes = server.call("research-agent/query_knowledge_base", query=question, collections="notes")["results"]
    messages = server.call("memory-server/memory/search", query=question)["messages"]
    return (
        {each["document_id"] for each in documents},
        {each["source_document"] for each in notes},
        {each["number"] for each in messages},
    )


ALL = ({"a", "b"}, {"a.md", "b.md"}, {1, 2})
COLLECTIONS = ("kho", "kho-experiences", "kho-messages")
READY = "These collections are ready: kho, kho-experiences, kho-messages\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with documents. No server runs on it, so no worker indexes them meanwhile."""
    folder: Path = tmp_path_factory.mktemp("reindex") / "data"
    with KhoServer(folder) as server:
        write(server)
        assert search_all(server) == ALL
    return folder


def test_lost_embedded_index_is_rebuilt(data: Path) -> None:
    shutil.rmtree(data / "passages")
    assert run_reindex(data) == {"indexed": 5, "unchanged": 1, "removed": 0}
    assert run_reindex(data) == {"indexed": 0, "unchanged": 6, "removed": 0}
    assert run_reindex(data, "--collection", "messages") == {"indexed": 0, "unchanged": 1, "removed": 0}
    assert run_reindex(data, "--anew", "--collection", "notes") == {"indexed": 2, "unchanged": 0, "removed": 0}
    with KhoServer(data) as server:
        assert search_all(server) == ALL
        output = run_kho("reindex", "--data", str(data))
        assert (output.returncode, "stop it first" in output.stderr) == (1, True)


@pytest.fixture
def qdrant() -> Iterator[QdrantServer]:
    with running_qdrant() as running:
        yield running


def test_empty_cluster_is_refilled_and_orphans_are_removed(data: Path, tmp_path: Path, qdrant: QdrantServer) -> None:
    data = shutil.copytree(data, tmp_path / "data", ignore=shutil.ignore_patterns("*.sock"))
    environment = {"KHO_QDRANT_URL": qdrant.url}
    prepared = run_kho("qdrant", "prepare", "--data", str(data), environment=environment)
    assert (prepared.returncode, prepared.stdout) == (0, READY), prepared.stderr
    for name in COLLECTIONS:
        assert qdrant.indexed[name].keys() == {"tenant", *KEYWORDS, *INTEGERS}
    assert qdrant.count(tenant="local") == 0
    qdrant_only = run_reindex(data, "--collection", "agent-data", environment=environment)
    assert qdrant_only == {"indexed": 2, "unchanged": 1, "removed": 0}
    rest = run_reindex(data, environment=environment)
    assert rest == {"indexed": 3, "unchanged": 3, "removed": 0}, "what is done is not done again"
    with KhoServer(data, environment=environment) as server:
        assert search_all(server) == ALL
        content = {"mime_type": "text/plain", "body": FERNS}
        server.call("agent-data/create_document", document_id="own", parent_id="root", content=content)
        assert search_all(server)[0] == {"a", "b", "own"}
    # Another data folder, which has none of this data.
    empty = tmp_path / "other"
    empty.mkdir(mode=0o700)
    assert run_reindex(empty, "--tenant", "missing", environment=environment)["removed"] == 0
    assert qdrant.count(tenant="local")
    assert run_reindex(empty, environment=environment) == {"indexed": 0, "unchanged": 0, "removed": 7}
    assert qdrant.count(tenant="local") == 0
    # The cluster has lost what the server wrote itself, too.
    assert run_reindex(data, environment=environment) == {"indexed": 6, "unchanged": 1, "removed": 0}


def test_unreachable_cluster_is_reported(tmp_path: Path, qdrant: QdrantServer) -> None:
    qdrant.stop()
    for command in (("reindex",), ("qdrant", "prepare")):
        output = run_kho(*command, "--data", str(tmp_path), environment={"KHO_QDRANT_URL": qdrant.url})
        assert (output.returncode, output.stderr) == (1, "kho: The vector store is not answering.\n")


def test_prepare_without_a_cluster_is_reported(tmp_path: Path) -> None:
    output = run_kho("qdrant", "prepare", "--data", str(tmp_path))
    assert output.returncode == 1
    assert "KHO_QDRANT_URL" in output.stderr


def test_index_of_another_model_is_reported(tmp_path: Path) -> None:
    (tmp_path / "passages").mkdir()
    space: dict[str, Any] = {"model": "another", "dimensions": 3}
    (tmp_path / "passages" / "space.json").write_text(json.dumps(space))
    output = run_kho("reindex", "--data", str(tmp_path))
    assert output.returncode == 1
    assert "made with model 'another'" in output.stderr
    assert "Traceback" not in output.stderr


def test_deployed_index_is_rebuilt_from_the_stacks_tables(qdrant: QdrantServer) -> None:
    settings = {
        "KHO_DOCUMENTS_TABLE": "acme-DocumentsTable",
        "KHO_KNOWLEDGE_TABLE": "acme-KnowledgeTable",
        "KHO_EXPERIENCES_TABLE": "acme-ExperiencesTable",
        "KHO_MEMORY_TABLE": "acme-MemoryTable",
        "KHO_QDRANT_URL": qdrant.url,
        "KHO_QDRANT_COLLECTION": "acme",
        "KHO_QDRANT_KEY_SECRET": "acme/qdrant",
        "KHO_EMBEDDER": "qdrant",
    }
    with running_aws_stack("acme", settings) as url:
        session = boto3.Session("test", "test", region_name="us-east-1")
        session.client("secretsmanager", endpoint_url=url).create_secret(Name="acme/qdrant", SecretString="hush")
        tables = session.client("dynamodb", endpoint_url=url)
        for definition in load().tables:
            renamed = definition.name.replace("kho-", "acme-")
            if renamed in settings.values() and renamed not in tables.list_tables()["TableNames"]:
                tables.create_table(TableName=renamed, **definition.creation)
        key = {"pk": "t#document#a", "sk": "document"}
        head = to_item(DocumentHead("a", "root", 3, 2, "text/plain", "{}", True, 0, 0))
        content = {"pk": "t#document#a", "sk": "content#000000000002", "body": zlib.compress(FERNS.encode())}
        for item in (key | head, content):
            attributes = {name: TypeSerializer().serialize(value) for name, value in item.items()}
            tables.put_item(TableName="acme-DocumentsTable", Item=attributes)
        done = run_kho("reindex", "--stack", "acme", "--json", environment=ENVIRONMENT | {"AWS_ENDPOINT_URL": url})
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"indexed": 1, "unchanged": 0, "removed": 0}
    assert qdrant.count(tenant="t", collection="agent-data", kind="passage") == 1
    assert qdrant.asked["PATCH /collections/acme"] == {"metadata": {"splitter": SPLITTER}}
    assert qdrant.keys == {"hush"}
