"""Searches see each write immediately: changed text is found and removed text is not."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import pytest

from shared.aws.dynamodb import Table, Write
from shared.documents import immediate_indexing, keys
from shared.documents import index as document_index
from shared.documents.index import COLLECTION, drop_stale_hits, refresh_document
from shared.documents.queries import DocumentQueries
from shared.platform.background import submit
from shared.platform.config import config
from shared.platform.locks import NamedLocks
from shared.search.index import knowledge_index
from shared.search.passages import DocumentRef, SearchQuestion
from tests.helpers.limits import LONG_SECONDS
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.search.passages import SearchHit
    from tests.helpers.document_agent import DocumentAgent

pytestmark = pytest.mark.usefixtures("indexing")

FERNS = "Ferns are watered at dawn."
ROCKETS = "Rockets burn kerosene and oxygen."


def hits(tenant: str, query: str = "watering ferns", **question: Any) -> list[SearchHit]:
    """Search a tenant's documents at their current revisions."""
    return drop_stale_hits(
        tenant, knowledge_index().search(SearchQuestion(query, tenant, (COLLECTION,), 20, **question)).hits
    )


def found_ids(tenant: str, query: str = "watering ferns", **question: Any) -> set[str]:
    """Return the ids of the documents that a search finds."""
    return {hit.passage.document.document_id for hit in hits(tenant, query, **question)}


def texts(tenant: str, document_id: str) -> list[str]:
    """Return all indexed texts of one document."""
    return [hit.passage.text for hit in hits(tenant) if hit.passage.document.document_id == document_id]


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Yield the documents whose passages are embedded from now on."""
    seen: list[str] = []
    real = knowledge_index().replace

    def replace(document: DocumentRef, *given: Any, **named: Any) -> bool:
        seen.append(document.document_id)
        return real(document, *given, **named)

    monkeypatch.setattr(knowledge_index(), "replace", replace)
    return seen


@pytest.mark.parametrize("mime_type", ["text/markdown", "text/plain", "application/json"])
def test_created_document_is_found_by_the_next_query(agent: DocumentAgent, mime_type: str) -> None:
    body = {"text/markdown": f"# Garden\n\n{FERNS}\n", "application/json": f'{{\n  "care": "{FERNS}"\n}}'}.get(
        mime_type, FERNS
    )
    agent(
        "create_document",
        document_id="a",
        parent_id="root",
        content={"mime_type": mime_type, "body": body},
        metadata={"title": "Care", "tags": ["green", "wet"], "source": "cursor"},
    )
    (hit,) = hits(agent.tenant)
    assert FERNS in hit.passage.text
    assert (hit.passage.title, hit.passage.tags, hit.passage.source) == ("Care", ("green", "wet"), "a")
    assert found_ids(agent.tenant, tags=("wet", "green")) == {"a"}
    assert found_ids(agent.tenant, tags=("wet", "dry")) == set()


def test_updated_document_is_found_with_new_text_only(agent: DocumentAgent) -> None:
    agent.create("a", body="\n\n".join(f"{FERNS} {'Moss too. ' * 80}{number}" for number in range(4)))
    assert len(texts(agent.tenant, "a")) > 1
    agent("update_document", document_id="a", patch={"content": {"body": ROCKETS}})
    assert texts(agent.tenant, "a") == [ROCKETS]


def test_stale_index_entries_are_not_returned(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    agent.create("a", body=FERNS)
    agent.create("b", body=FERNS)
    monkeypatch.setattr(immediate_indexing._index, "_paused_until", math.inf)
    agent("update_document", document_id="a", patch={"content": {"body": ROCKETS}})
    agent("delete_document", document_id="b")
    assert hits(agent.tenant) == []
    refresh_document(agent.tenant, "a")
    assert texts(agent.tenant, "a") == [ROCKETS]
    agent("restore_document", document_id="b")
    assert found_ids(agent.tenant) == {"a", "b"}


def test_delete_hides_and_restore_returns_a_document(agent: DocumentAgent) -> None:
    agent.create("a", body=FERNS)
    agent("delete_document", document_id="a")
    assert found_ids(agent.tenant) == set()
    assert knowledge_index().count(agent.tenant) == 0, "its passages are no longer kept"
    agent("restore_document", document_id="a")
    assert found_ids(agent.tenant) == {"a"}


def test_recursive_delete_hides_and_restore_returns_children(agent: DocumentAgent) -> None:
    agent.create("top", body=FERNS)
    for number in range(5):
        agent.create(f"a{number}", "top", FERNS)
        agent.create(f"b{number}", f"a{number}", FERNS)
    everything = found_ids(agent.tenant)
    assert len(everything) == 11
    agent("delete_document", document_id="top", recursive=True)
    assert found_ids(agent.tenant) == set()
    assert knowledge_index().count(agent.tenant) == 0
    agent("restore_document", document_id="top", recursive=True)
    assert found_ids(agent.tenant) == everything


def test_scheduled_deletion_hides_the_document_at_its_time(agent: DocumentAgent, clock: Callable[..., None]) -> None:
    agent.create("a", body=FERNS)
    agent("delete_document", document_id="a", delete_at="2999-01-01T00:00:00Z")
    assert found_ids(agent.tenant) == {"a"}
    clock(days=366 * 1000)
    assert found_ids(agent.tenant) == set()


def test_update_of_unsearched_fields_does_not_reembed(agent: DocumentAgent, embedded: list[str]) -> None:
    agent.create("folder")
    agent.create("a", body=FERNS, metadata={"title": "Care", "tags": ["green"]})
    embedded.clear()
    agent.move("a", "folder")
    agent("update_document", document_id="a", patch={"metadata": {"title": "Care", "tags": ["green"], "by": "cursor"}})
    agent("update_document", document_id="a", patch={"is_human_readable": False})
    assert found_ids(agent.tenant) >= {"a"}
    refresh_document(agent.tenant, "a")
    assert embedded == []
    agent("update_document", document_id="a", patch={"metadata": {"title": "Watering", "tags": ["wet"]}})
    assert embedded == ["a"]
    assert [hit.passage.title for hit in hits(agent.tenant, tags=("wet",))] == ["Watering"]


def test_metadata_is_filtered_by_at_once_and_changed_without_embedding(
    agent: DocumentAgent, embedded: list[str]
) -> None:
    agent.create("a", body=FERNS, metadata={"source": "cursor", "n": [1, 2]})
    agent.create("b", body=f"{FERNS} Often.", metadata={"source": "codex"})
    assert embedded == ["a", "b"]
    assert found_ids(agent.tenant, metadata=(('source="cursor"', 'source="codex"'),)) == {"a", "b"}
    assert found_ids(agent.tenant, metadata=(('source="cursor"',), ("n=2",))) == {"a"}
    agent("edit_document", document_id="a", edits=[{"metadata": {"n": 3, "source": None}}])
    assert found_ids(agent.tenant, metadata=(("n=3",),)) == {"a"}
    assert found_ids(agent.tenant, metadata=(('source="cursor"',),)) == set()
    assert embedded == ["a", "b"]
    agent("edit_document", document_id="a", edits=[{"restore_revision": 1}])
    assert found_ids(agent.tenant, metadata=(("n=1",),)) == {"a"}


def test_late_indexing_does_not_bring_earlier_metadata_back(
    agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.create("a", body=FERNS, metadata={"n": 1})
    refresh_late(agent, monkeypatch, lambda: agent("update_document", document_id="a", patch={"metadata": {"n": 2}}))
    assert found_ids(agent.tenant, metadata=(("n=2",),)) == {"a"}
    assert found_ids(agent.tenant, metadata=(("n=1",),)) == set()


def test_documents_older_than_the_index_are_found(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(immediate_indexing, "_PAUSE_SECONDS", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(immediate_indexing, "refresh_document", lambda *_, **__: None)
        agent.create("a", body=FERNS)
        agent("update_document", document_id="a", patch={"metadata": {"title": "Care"}})
    key = {"pk": keys.document(agent.tenant, "a"), "sk": keys.DOCUMENT}
    Table(config().documents_table).write(Write("Update", key, expression="REMOVE searchable_since"))
    refresh_document(agent.tenant, "a")
    assert found_ids(agent.tenant) == {"a"}
    agent("update_document", document_id="a", patch={"is_human_readable": False})
    assert found_ids(agent.tenant) == {"a"}


def test_late_worker_does_not_overwrite_an_update(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    agent.create("a", body=FERNS)
    assert texts(agent.tenant, "a") == [FERNS]
    refresh_late(agent, monkeypatch, lambda: agent("update_document", document_id="a", patch=patch("Ferns, not now.")))
    assert texts(agent.tenant, "a") == ["Ferns, not now."]


def test_late_worker_does_not_undo_a_deletion(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    agent.create("a", body=FERNS)
    refresh_late(agent, monkeypatch, lambda: agent("delete_document", document_id="a"))
    assert found_ids(agent.tenant) == set()
    assert knowledge_index().count(agent.tenant) == 0


def test_an_edit_is_found_at_once(agent: DocumentAgent) -> None:
    agent.create("a", body=FERNS)
    agent("edit_document", document_id="a", edits=[{"replace": {"old": "dawn", "new": "dusk"}}])
    assert texts(agent.tenant, "a") == ["Ferns are watered at dusk."]


def test_late_deletion_does_not_remove_a_restored_document(
    agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.create("a", body=FERNS)
    agent("delete_document", document_id="a")
    refresh_late(agent, monkeypatch, lambda: agent("restore_document", document_id="a"))
    assert found_ids(agent.tenant) == {"a"}


def patch(body: str) -> dict[str, Any]:
    return {"content": {"body": body}}


def refresh_late(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], Any]) -> None:
    """Index the state from before `meanwhile` after it has run, as a worker in another process would."""
    with monkeypatch.context() as patched:
        patched.setattr(document_index, "_locks", NamedLocks())
        real = DocumentQueries.head
        read = []

        def head(reading: Any, document_id: str) -> Any:
            read.append(real(reading, document_id))
            if len(read) == 1:
                patched.setattr(DocumentQueries, "head", real)
                patched.setattr(document_index, "_locks", NamedLocks())
                meanwhile()
            return read[0]

        patched.setattr(DocumentQueries, "head", head)
        refresh_document(agent.tenant, "a", force=True)


def test_a_document_being_indexed_holds_up_no_other_document(
    agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even documents whose hashes are alike are indexed while the first one waits for the model."""
    indexing, may_end = threading.Event(), threading.Event()
    real = knowledge_index().replace

    def replace(document: DocumentRef, *given: Any, **named: Any) -> bool:
        if document.document_id == "large":
            indexing.set()
            assert may_end.wait(LONG_SECONDS)
        return real(document, *given, **named)

    monkeypatch.setattr(knowledge_index(), "replace", replace)
    monkeypatch.setattr(DocumentRef, "__hash__", lambda _: 7)
    large = submit(lambda: agent.create("large", body=ROCKETS))
    assert indexing.wait(CEILING_SECONDS)
    try:
        submit(lambda: agent.create("small", body=FERNS)).result(CEILING_SECONDS)
        assert found_ids(agent.tenant) == {"small"}
        # Its own writers wait for it only if their text is short enough to be indexed by the write.
        rewritten = submit(lambda: agent("update_document", document_id="large", patch=patch("x " * 40_000)))
        assert rewritten.result(CEILING_SECONDS)["revision"] == 2
    finally:
        may_end.set()
    large.result(CEILING_SECONDS)


def test_last_of_concurrent_writes_is_found(agent: DocumentAgent) -> None:
    agent.create("a", body=FERNS)

    def write(number: int) -> None:
        agent("update_document", document_id="a", patch=patch(f"{FERNS} Version {number}."))

    writers = [threading.Thread(target=write, args=[number]) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert texts(agent.tenant, "a") == [agent.get("a")["content"]["body"]]


def test_failed_create_leaves_no_passages(agent: DocumentAgent) -> None:
    refresh_document(agent.tenant, "missing")
    assert knowledge_index().count(agent.tenant) == 0
    assert knowledge_index()._version(DocumentRef(agent.tenant, COLLECTION, "missing")) == 0


def test_erased_document_is_not_indexed(agent: DocumentAgent) -> None:
    agent.create("a", body=FERNS)
    Table(config().documents_table).write(
        Write("Delete", {"pk": keys.document(agent.tenant, "a"), "sk": keys.DOCUMENT})
    )
    assert found_ids(agent.tenant) == set()
    refresh_document(agent.tenant, "a")
    assert knowledge_index().count(agent.tenant) == 0


def test_tenants_with_equal_ids_are_isolated(tenant: str) -> None:
    from tests.helpers.document_agent import DocumentAgent

    tenants = [f"{tenant}-{number}" for number in range(50)]
    for number, each in enumerate(tenants):
        DocumentAgent(each).create("a", body=f"{FERNS} Said by number {number}.")
    for number, each in enumerate(tenants):
        assert [hit.passage.text for hit in hits(each)] == [f"{FERNS} Said by number {number}."]
    foreign = knowledge_index().search(SearchQuestion("watering ferns", tenants[0], (COLLECTION,))).hits
    assert foreign
    assert drop_stale_hits(tenants[1], foreign) == []
    DocumentAgent(tenants[0])("delete_document", document_id="a")
    assert (found_ids(tenants[0]), found_ids(tenants[1])) == (set(), {"a"})


def test_hanging_index_is_awaited_once(agent: DocumentAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, waking = [], threading.Event()

    def hang(_tenant: str, document_id: str, **_: Any) -> None:
        asked.append(document_id)
        waking.wait()

    monkeypatch.setattr(immediate_indexing, "refresh_document", hang)
    monkeypatch.setattr(immediate_indexing, "_FIRST_RESPONSE_SECONDS", 0.0)
    monkeypatch.setattr(immediate_indexing, "_PAUSE_SECONDS", math.inf)
    monkeypatch.setenv("KHO_QDRANT_URL", "http://127.0.0.1:9")
    config.cache_clear()
    try:
        for name in ("a", "b", "c"):
            agent.create(name)
    finally:
        waking.set()
        config.cache_clear()
    until(lambda: asked)
    assert asked == ["a"]


def test_long_text_is_indexed_by_the_stream(agent: DocumentAgent, embedded: list[str]) -> None:
    agent.create("long", body="Ferns are watered. " * 4_000)
    assert embedded == []
    assert found_ids(agent.tenant) == set()
