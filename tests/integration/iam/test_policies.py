"""Least privilege, measured: each function's policy allows exactly the DynamoDB actions that its code uses."""

from __future__ import annotations

import importlib
import random
import string
from typing import Any

import pytest

from shared.aws.dynamodb import Table
from shared.documents.index import refresh_document
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.ingestion_jobs import IngestionJobs
from shared.knowledge.keys import awaiting_index
from shared.knowledge.models import NewKnowledgeDocument
from shared.memory.conversations import Conversations
from shared.platform.config import config
from shared.platform.lanes import bulk_lane
from shared.platform.runtime import runtime
from shared.rpc.caller import ROLES, Caller
from shared.search.embedding.function import BULK_FUNCTION, URGENT_FUNCTION, FunctionEmbedder
from tests.helpers.measured_policies import measures
from tests.helpers.memory_index import MemoryIndex
from tests.helpers.template import invocable_functions, table_actions

pytestmark = pytest.mark.usefixtures("indexing")

CHAT = {"conversation_id": "chat"}
MESSAGE = CHAT | {"role": "user", "content": "x"}
OF_LAN = {"subject": "person:lan"}
GENERATION = "0" * 32

LARGE = {"body": "".join(random.Random(1).choices(string.printable, k=100_000))}
# As large, with almost nothing to embed.
BLANK = {"body": "x" + "".join(random.Random(1).choices(" \t\n\u2002\u2003\u2004\u2005", k=300_000))}
TREE = [
    {"document_id": document_id, "parent_id": parent_id, "content": {"body": "x"}}
    for parent_id, document_id in (("root", "top"), ("top", "mid"), ("mid", "leaf"), ("mid", "twig"), ("mid", "gone"))
]

NOTE = {"collection": "notes"}

# Calls that cover every path of each function's code to the store.
SCENARIOS: dict[str, list[dict[str, Any]]] = {
    "agent_data-create_document": [
        {"document_id": "new", "parent_id": "mid", "content": LARGE, "request_id": "r"},
        {"document_id": "short", "parent_id": "mid", "content": {"body": "y"}},
    ],
    "agent_data-update_document": [
        {"document_id": "top", "patch": {"content": {"body": "y"}}, "request_id": "r"},
        {"document_id": "top", "patch": {"content": LARGE}},
        {"document_id": "top", "patch": {"metadata": {"title": "x"}}},
        {"document_id": "top", "patch": {"metadata": {}}},
    ],
    "agent_data-edit_document": [
        {"document_id": "top", "edits": [{"append": "y"}, {"metadata": {"title": "x"}}], "request_id": "r"},
        {"document_id": "top", "edits": [{"metadata": {"title": "y"}}]},
        {"document_id": "large", "edits": [{"append": "y"}]},
        {"document_id": "large", "edits": [{"restore_revision": 1}]},
    ],
    "agent_data-move_document": [
        {"document_id": "leaf", "new_parent_id": "mid", "position": {"before": "twig"}, "request_id": "r"},
        {"document_id": "twig", "new_parent_id": "root", "position": {"ordering": 0}},
    ],
    "agent_data-delete_document": [
        {"document_id": "leaf", "delete_at": "2999-01-01T00:00:00Z"},
        {"document_id": "top", "recursive": True, "request_id": "r"},
    ],
    "agent_data-restore_document": [{"document_id": "gone"}, {"document_id": "gone", "recursive": True}],
    "agent_data-get_document": [{"document_id": "large"}, {"document_id": "large", "revision": 1}],
    "agent_data-find_documents": [{"query": "mid"}, {"query": "leaf twig"}],
    "agent_data-list_ancestors": [{"document_id": "leaf"}],
    "agent_data-list_deleted": [{}],
    "agent_data-list_children": [{"parent_id": "top", "has_children": True}, {"parent_id": "top", "from_child": "mid"}],
    "agent_data-document_history": [{"document_id": "top"}],
    "agent_data-query_knowledge": [{"query": "x"}],
    "memory_server-add_message": [*[MESSAGE] * 6, MESSAGE | OF_LAN],  # the sixteenth message counts them
    "memory_server-get_or_create": [{}, CHAT, CHAT | OF_LAN, OF_LAN],
    "memory_server-get_context": [CHAT],
    "memory_server-get_conversation": [CHAT],
    "memory_server-get_all_messages": [CHAT],
    "memory_server-get_old_messages": [CHAT],
    "memory_server-get_or_create_summary": [CHAT],
    "memory_server-get_summary": [CHAT],
    "memory_server-set_summary": [CHAT | {"summary": "x"}],
    "memory_server-clear": [CHAT, CHAT],
    "memory_server-delete": [CHAT, CHAT],
    "memory_server-delete_message": [CHAT | {"message_id": f"msg_{GENERATION}_{number}"} for number in (10, 1)],
    "memory_server-erase_subject": [OF_LAN],
    "memory_server-set_expiry": [CHAT | {"expires_at": "2999-01-01T00:00:00Z"}],
    "memory_server-list_conversations": [{}, OF_LAN],
    "memory_server-list_messages": [CHAT],
    "memory_server-search": [{"query": "x"}, CHAT, OF_LAN],
    "memory_server-resources_list": [{}],
    "memory_server-resources_read": [{"uri": "memory://conversation/chat"}],
    "research_agent-query_knowledge_base": [
        {"query": "plants", "collections": "notes"},
        {"query": "plants", "project_name": "garden"},
        {"query": "plants"},
    ],
    "research_agent-manage_collections": [
        {"action": "create", "collection_name": "more", "project_name": "garden"},
        {"action": "list"},
        {"action": "info", "collection_name": "more"},
        {"action": "delete", "collection_name": "more"},
    ],
    "research_agent-ingest_documents": [
        NOTE | {"documents": [{"path": "a.md", "content": "How ferns are watered"}], "remove": ["b.md"]},
        NOTE | {"documents": [{"path": "long.md", "content": "word " * 10_000}]},
    ],
    "research_agent-augment_knowledge": [
        NOTE | {"source": "a.md", "content": "How mosses are watered"},
        NOTE | {"source": "long.md", "content": "word " * 10_000},
    ],
    "research_agent-manage_projects": [
        {"action": "create", "project_name": "shed", "collections": "notes"},
        {"action": "list"},
    ],
    "research_agent-list_documents": [{"collection_name": "notes"}],
    "research_agent-list_passages": [{"collection_name": "notes", "path": "a.md"}],
    "research_agent-remove_document": [{"collection_name": "notes", "path": "b.md"}],
    "research_agent-get_ingestion": [{"job_id": "job"}],
    "research_agent-resources_read": [
        {"uri": uri} for uri in ("knowledge://collections", "knowledge://collections/notes", "knowledge://queries")
    ],
    "tool_server-search": [{"query": "plants"}, {"query": "plants", "include_messages": True}],
    "tool_server-fetch": [
        {"id": "document:large"},
        {"id": "knowledge:notes#a.md"},
        {"id": f"message:chat#msg_{GENERATION}_1", "include_messages": True},
    ],
    "tool_server-tools_list": [{}],
    "tool_server-system_caller": [{}],
    "tool_server-system_check": [{}],
    "tool_server-tools_call": [],
}

VERIFYING = [
    f"endpoints-{name}" for name in ("authorizer", "jsonrpc", "actions", "mcp", "recall_kit_mcp", "device_mcp")
]

# Reached only if a language model is configured.
WITH_A_MODEL = {
    "memory_server-get_or_create_summary": {
        (f"dynamodb:{action}", "MemoryTable") for action in ("ConditionCheckItem", "PutItem", "Query")
    }
}

# Reached only if the index is behind.
WITH_A_STALE_INDEX = {"agent_data-delete_document": {URGENT_FUNCTION}}


def run(function: str, calls: list[dict[str, Any]], tenant: str) -> None:
    handler = importlib.import_module(function.replace("-", ".")).handler
    caller = Caller("tester", frozenset(ROLES), tenant)
    for params in calls:
        answer = handler(
            {"method": function, "params": params, "caller": caller.record(), "correlation_id": "policy-test"}, None
        )
        assert "result" in answer, answer


def prepare_knowledge(tenant: str) -> None:
    run("research_agent-manage_collections", [{"action": "create", "collection_name": "notes"}], tenant)
    project = {"action": "create", "project_name": "garden", "collections": "notes"}
    run("research_agent-manage_projects", [project], tenant)
    documents = [{"path": path, "content": f"How plants are watered: {path}"} for path in ("a.md", "b.md")]
    run("research_agent-ingest_documents", [NOTE | {"documents": documents}], tenant)
    jobs = IngestionJobs(Table(config().knowledge_table), tenant)
    jobs.store_input("job", CollectionStore(Table(config().knowledge_table), tenant).require("notes"), [], [])


@pytest.fixture
def invoked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the functions that functions of the test invoke."""
    invoked: set[str] = set()
    functions = runtime.functions
    assert functions

    def record(function: str, payload: bytes) -> bytes:
        invoked.add(function)
        return functions(function, payload)

    monkeypatch.setattr(runtime, "functions", record)
    return invoked


@measures(*SCENARIOS)
@pytest.mark.parametrize("function", sorted(SCENARIOS))
def test_policy_allows_exactly_the_actions_used(
    function: str,
    tenant: str,
    store_actions: set[tuple[str, str]],
    invoked: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patches:
        patches.setattr("shared.memory.conversations._new_generation", lambda: GENERATION)
        run("memory_server-add_message", [MESSAGE] * 10, tenant)
    if function.startswith("memory_server-"):
        run("memory_server-set_summary", [CHAT | {"summary": "x"}], tenant)
        run("memory_server-get_or_create", [{"conversation_id": "hers"} | OF_LAN], tenant)
    reads_both = function in ("tool_server-search", "tool_server-fetch")
    if reads_both or function.startswith("agent_data-"):
        run("agent_data-create_document", [*TREE, {**TREE[0], "document_id": "large", "content": LARGE}], tenant)
        run("agent_data-delete_document", [{"document_id": "gone"}], tenant)
    if function in ("agent_data-query_knowledge", "tool_server-search"):
        refresh_document(tenant, "leaf")
    if reads_both or function.startswith("research_agent-"):
        prepare_knowledge(tenant)
    store_actions.clear()
    invoked.clear()
    run(function, SCENARIOS[function], tenant)
    assert store_actions | WITH_A_MODEL.get(function, set()) == table_actions(function)
    assert invoked | WITH_A_STALE_INDEX.get(function, set()) == invocable_functions(function)


@measures(*VERIFYING)
@pytest.mark.parametrize("function", VERIFYING)
def test_key_verification_needs_only_get_item(function: str, tenant: str, store_actions: set[tuple[str, str]]) -> None:
    from shared.access.api_keys import ApiKeys
    from shared.access.credentials import CredentialVerifier

    _, text = ApiKeys(Table(config().access_table)).create(tenant, "reader")
    store_actions.clear()
    assert CredentialVerifier(config().access_table).verify(f"Bearer {text}").caller.tenant_id == tenant
    assert store_actions == table_actions(function)


@measures("workers-purge_messages")
def test_policy_of_purge_worker(tenant: str, store_actions: set[tuple[str, str]]) -> None:
    from workers.purge_messages import handler

    chats = [{"conversation_id": name} for name in ("cleared", "expiring", "erased", "erased_too")]
    for chat in chats:
        run("memory_server-add_message", [MESSAGE | chat], tenant)
    conversations = Conversations(Table(config().memory_table), tenant)
    cleared, expiring = (conversations.require(name).generation for name in ("cleared", "expiring"))
    run("memory_server-clear", [chats[0]], tenant)
    run("memory_server-set_expiry", [chats[1] | {"expires_at": "2999-01-01T00:00:00Z"}], tenant)
    run("memory_server-get_or_create", [chat | OF_LAN for chat in chats[2:]], tenant)
    run("memory_server-erase_subject", [OF_LAN], tenant)
    [erasure] = [item["sk"] for page in conversations.table.scan(f"{tenant}#erasure") for item in page]
    store_actions.clear()
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr("workers.purge_messages._CONVERSATIONS_AT_ONCE", 1)
        for kind, sk, event in (
            ("purge", f"purge#{cleared}", "INSERT"),
            ("expiry", f"expiry#{expiring}#expiring", "REMOVE"),
            ("erasure", erasure, "INSERT"),
            ("erasure", erasure, "MODIFY"),
        ):
            keys = {"pk": {"S": f"{tenant}#{kind}"}, "sk": {"S": sk}}
            record = {"eventID": "1", "eventName": event, "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}
            assert handler({"Records": [record]}, None) == {"batchItemFailures": []}
    assert store_actions == table_actions("workers-purge_messages")


@measures("workers-index_messages")
def test_policy_of_message_index_worker(tenant: str, store_actions: set[tuple[str, str]], invoked: set[str]) -> None:
    from workers.index_messages import handler

    run("memory_server-add_message", [MESSAGE] * 3, tenant)
    generation = Conversations(Table(config().memory_table), tenant).require("chat").generation
    messages = f"{tenant}#messages#{generation}"
    run("memory_server-set_expiry", [CHAT | {"expires_at": "2999-01-01T00:00:00Z"}], tenant)
    run("memory_server-delete_message", [CHAT | {"message_id": f"msg_{generation}_1"}], tenant)
    store_actions.clear()
    invoked.clear()
    fields = (f"{tenant}#fields", f"fields#{generation}#chat")
    records = [(messages, "message#000000000001"), (messages, "message#000000000003"), fields]
    keys = [{"pk": {"S": pk}, "sk": {"S": sk}} for pk, sk in records]
    event = {
        "Records": [
            {"eventID": "1", "eventName": "INSERT", "dynamodb": {"Keys": each, "SequenceNumber": str(number)}}
            for number, each in enumerate(keys)
        ]
    }
    assert handler(event, None) == {"batchItemFailures": []}
    assert store_actions == table_actions("workers-index_messages")
    assert invoked == invocable_functions("workers-index_messages")


def test_embedding_functions_need_no_table(store_actions: set[tuple[str, str]]) -> None:
    store_actions.clear()
    assert FunctionEmbedder().question("How are plants watered?").tokens
    with bulk_lane():
        assert FunctionEmbedder().passages(["Plants are watered in the morning."])
    assert store_actions == table_actions(URGENT_FUNCTION) == table_actions(BULK_FUNCTION) == set()


def work(tenant: str, sk: str) -> dict[str, Any]:
    keys = {"pk": {"S": f"{tenant}#work"}, "sk": {"S": sk}}
    record = {"eventID": "1", "eventName": "INSERT", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}
    return {"Records": [record]}


@measures("workers-ingest")
def test_policy_of_ingestion_worker(tenant: str, store_actions: set[tuple[str, str]], invoked: set[str]) -> None:
    from workers import ingest

    prepare_knowledge(tenant)
    collection = CollectionStore(Table(config().knowledge_table), tenant).require("notes")
    jobs = IngestionJobs(Table(config().knowledge_table), tenant)
    jobs.store_input(
        "long",
        collection,
        [NewKnowledgeDocument("a.md", "How mosses grow"), NewKnowledgeDocument("c.md", "Soil")],
        ["b.md"],
    )
    store_actions.clear()
    invoked.clear()
    assert ingest.handler(work(tenant, "ingest#long#1"), None) == {"batchItemFailures": []}
    assert jobs.require("long").status == "done"
    assert store_actions == table_actions("workers-ingest")
    assert invoked == invocable_functions("workers-ingest")


@measures("workers-index_documents")
def test_policy_of_document_index_worker(tenant: str, store_actions: set[tuple[str, str]], invoked: set[str]) -> None:
    from workers import index_documents

    documents = ({"document_id": name, "parent_id": "root", "content": BLANK} for name in ("large", "ending"))
    run("agent_data-create_document", list(documents), tenant)
    run("agent_data-delete_document", [{"document_id": "ending", "delete_at": "2999-01-01T00:00:00Z"}], tenant)
    store_actions.clear()
    invoked.clear()
    for name in ("large", "ending"):
        keys = {"pk": {"S": f"{tenant}#document#{name}"}, "sk": {"S": "document"}}
        record = {"eventID": "1", "eventName": "MODIFY", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}
        assert index_documents.handler({"Records": [record]}, None) == {"batchItemFailures": []}
    assert store_actions == table_actions("workers-index_documents")
    assert invoked == invocable_functions("workers-index_documents")


@measures("workers-index_knowledge")
def test_policy_of_collection_index_worker(tenant: str, store_actions: set[tuple[str, str]], invoked: set[str]) -> None:
    from workers import index_knowledge

    prepare_knowledge(tenant)
    collections = CollectionStore(Table(config().knowledge_table), tenant)
    down = MemoryIndex()
    down.down = True
    contents = CollectionDocuments(Table(config().knowledge_table), tenant, collections.require("notes"), down)
    assert contents.put(NewKnowledgeDocument("new.md", "How herbs are dried")).pending
    store_actions.clear()
    invoked.clear()
    event = work(tenant, awaiting_index(collections.require("notes").id, "new.md"))
    assert index_knowledge.handler(event, None) == {"batchItemFailures": []}
    stored = contents.find("new.md")
    assert stored is not None
    assert stored.indexed
    assert invoked == invocable_functions("workers-index_knowledge")
    needed = set(store_actions)
    deletion = collections.delete("notes")
    store_actions.clear()
    assert index_knowledge.handler(work(tenant, f"purge#{deletion.id}"), None) == {"batchItemFailures": []}
    assert needed | store_actions == table_actions("workers-index_knowledge")
