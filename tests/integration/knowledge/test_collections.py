"""Collections, documents and projects in the real store, with concurrent writers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from research_agent import manage_collections
from research_agent.manage_collections import ManageCollections
from shared.aws.dynamodb import Keys, Table
from shared.knowledge import keys
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.ingestion import DocumentIngestion
from shared.knowledge.ingestion_jobs import IngestionJobs
from shared.knowledge.models import Collection, IngestionTally, NewKnowledgeDocument
from shared.knowledge.projects import ProjectStore
from shared.knowledge.query_history import QueryHistory
from shared.knowledge.recorded_space import recorded_space
from shared.rpc import cursor as cursors
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, InvalidParams, InvalidRequest, NotFound, OutOfTime, TooLarge
from tests.helpers.dynamodb_requests import intercept_requests
from tests.helpers.memory_index import MemoryIndex

TEXT = "# Guide\n\nHow to water plants.\n"


@pytest.fixture
def index() -> MemoryIndex:
    return MemoryIndex()


@pytest.fixture
def documents(table: Table, tenant: str, collection: Collection, index: MemoryIndex) -> CollectionDocuments:
    return CollectionDocuments(table, tenant, collection, index)


def test_collection_names_are_unique(collections: CollectionStore, collection: Collection) -> None:
    assert collections.require("notes", recorded_space()) == collection
    with pytest.raises(Conflict, match="already exists"):
        collections.create("notes", "fundamental", recorded_space())
    with pytest.raises(NotFound):
        collections.require("other")
    with pytest.raises(Conflict, match="was embedded with"):
        collections.require("notes", replace(recorded_space(), dimensions=1024))


def test_concurrent_creates_make_one_collection(collections: CollectionStore) -> None:
    def create(_: int) -> bool:
        try:
            collections.create("one", "project-specific", recorded_space())
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(create, range(10))) == 1


def test_tenants_are_isolated(table: Table, tenant: str, collection: Collection, index: MemoryIndex) -> None:
    other = CollectionStore(table, f"{tenant}-other")
    assert other.list_all() == []
    mine = CollectionDocuments(table, tenant, collection, index)
    mine.put(NewKnowledgeDocument("a.md", TEXT))
    assert CollectionDocuments(table, f"{tenant}-other", collection, index).page(10) == ([], None)
    with pytest.raises(NotFound):
        other.delete("notes")


def test_repeated_ingestion_changes_nothing(documents: CollectionDocuments, index: MemoryIndex) -> None:
    assert documents.put(NewKnowledgeDocument("a.md", TEXT)).outcome == "added"
    before = documents.find("a.md")
    assert before is not None
    assert (before.title, before.chunks, before.revision, before.indexed) == ("Guide", 1, 1, True)
    assert documents.put(NewKnowledgeDocument("a.md", TEXT)).outcome == "unchanged"
    assert documents.find("a.md") == before
    assert index.replaced == 1


def test_last_ingestion_determines_the_documents_tree(documents: CollectionDocuments, index: MemoryIndex) -> None:
    trees = []
    for tree in ("", "mine", "yours", ""):
        documents.put(NewKnowledgeDocument("a.md", TEXT, tree=tree))
        stored = documents.find("a.md")
        assert stored is not None
        trees.append(stored.tree)
    assert trees == ["", "mine", "yours", "yours"]
    assert index.replaced == 1


def test_changed_file_replaces_and_removed_file_deletes(
    documents: CollectionDocuments, index: MemoryIndex, tenant: str, table: Table, collection: Collection
) -> None:
    def texts() -> int:
        return sum(len(page) for page in table.query(keys.partition(tenant, "texts", collection.id), Keys.after(" ")))

    documents.put(NewKnowledgeDocument("a.md", TEXT * 40))
    assert index.count(tenant) > 1
    assert documents.put(NewKnowledgeDocument("a.md", TEXT)).outcome == "updated"
    assert (index.count(tenant), texts()) == (1, 1)
    assert documents.remove("a.md")
    assert not documents.remove("a.md")
    assert (index.count(tenant), texts()) == (0, 0)
    assert documents.page(10) == ([], None)
    assert documents.put(NewKnowledgeDocument("a.md", TEXT)).outcome == "added"
    assert index.count(tenant) == 1


def test_concurrent_writers_leave_one_document_each(
    documents: CollectionDocuments, index: MemoryIndex, tenant: str, table: Table, collection: Collection
) -> None:
    new = [NewKnowledgeDocument(f"{number}.md", f"{TEXT}{number}") for number in range(10)]
    with ThreadPoolExecutor(8) as pool:
        outcomes = [each.outcome for each in pool.map(documents.put, new * 4)]
    assert outcomes.count("added") == 10
    assert index.count(tenant) == 10
    assert documents.size() == (10, 10)
    texts = [
        item for page in table.query(keys.partition(tenant, "texts", collection.id), Keys.after(" ")) for item in page
    ]
    assert len(texts) == 10


def test_concurrent_writers_of_different_texts_leave_one_version(
    documents: CollectionDocuments, index: MemoryIndex, tenant: str
) -> None:
    """Each of ten writers loses at most to the nine others: all succeed within their ten attempts."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(documents.put, [NewKnowledgeDocument("a.md", f"version {number}") for number in range(10)]))
    stored = documents.find("a.md")
    assert stored is not None
    assert stored.revision == 10
    assert stored.indexed
    assert index.count(tenant) == 1


def test_missed_index_writes_are_repeated(
    documents: CollectionDocuments, index: MemoryIndex, tenant: str, table: Table
) -> None:
    documents.put(NewKnowledgeDocument("gone.md", TEXT))
    index.down = True
    assert documents.put(NewKnowledgeDocument("a.md", TEXT)).pending
    assert documents.remove("gone.md")
    waiting = [
        item["path"]
        for page in table.query(keys.partition(tenant, "work"), Keys.beginning(keys.INDEX))
        for item in page
    ]
    assert sorted(waiting) == ["a.md", "gone.md"]
    index.down = False
    assert [documents.reindex(path) for path in waiting] == [True, True]
    assert [documents.reindex(path) for path in waiting] == [False, False]
    assert index.count(tenant) == 1
    stored = documents.find("a.md")
    assert stored is not None
    assert stored.indexed


def test_repeated_ingestion_indexes_missing_passages(
    documents: CollectionDocuments, index: MemoryIndex, tenant: str
) -> None:
    index.down = True
    documents.put(NewKnowledgeDocument("a.md", TEXT))
    index.down = False
    assert documents.put(NewKnowledgeDocument("a.md", TEXT)).outcome == "updated"
    assert documents.put(NewKnowledgeDocument("a.md", TEXT)).outcome == "unchanged"
    assert index.count(tenant) == 1


def test_timeout_does_not_fail_the_document(
    documents: CollectionDocuments, index: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **__: object) -> bool:
        raise OutOfTime

    with monkeypatch.context() as patched:
        patched.setattr(index, "replace", late)
        with pytest.raises(OutOfTime):
            DocumentIngestion(documents).add_all([NewKnowledgeDocument("a.md", TEXT)])
    again = DocumentIngestion(documents)
    again.add_all([NewKnowledgeDocument("a.md", TEXT)])
    assert (again.tally.updated, again.tally.failed) == (1, [])


def test_large_text_round_trip(documents: CollectionDocuments, index: MemoryIndex, tenant: str) -> None:
    import random

    chosen = random.Random(4)
    large = " ".join(f"{chosen.getrandbits(64):x}" for _ in range(60_000))
    documents.put(NewKnowledgeDocument("large.txt", large))
    before = index.count(tenant)
    assert documents.reindex("large.txt", force=True)
    assert index.count(tenant) == before > 1000
    with pytest.raises(TooLarge):
        documents.put(NewKnowledgeDocument("x.txt", "x" * (4 << 20) + "x"))
    with pytest.raises(InvalidRequest, match="holds no text"):
        documents.put(NewKnowledgeDocument("x.txt", " \n "))


def test_documents_are_listed_in_pages(documents: CollectionDocuments) -> None:
    for number in range(7):
        documents.put(NewKnowledgeDocument(f"{number}.md", TEXT))
    documents.remove("3.md")
    first, cursor = documents.page(4)
    rest, end = documents.page(4, cursor)
    assert [each.path for each in first + rest] == [f"{number}.md" for number in (0, 1, 2, 4, 5, 6)]
    assert end is None
    assert set(documents.read_field("hash", ["1.md", "3.md", "x.md"])) == {"1.md"}


def test_deleted_collection_is_not_found(
    collections: CollectionStore, documents: CollectionDocuments, tenant: str, table: Table, collection: Collection
) -> None:
    documents.put(NewKnowledgeDocument("a.md", TEXT))
    collections.delete("notes")
    assert collections.find("notes") is None
    again = collections.create("notes", "fundamental", recorded_space())
    assert again.id != collection.id
    collections.purge(collection.id)
    for partition in (
        keys.partition(tenant, "documents", collection.id),
        keys.partition(tenant, "texts", collection.id),
    ):
        assert [item for page in table.query(partition, Keys.after(" ")) for item in page] == []


def test_projects(table: Table, tenant: str) -> None:
    projects = ProjectStore(table, tenant)
    assert projects.create("garden", ["b", "a", "b"]).collections == ["a", "b"]
    with pytest.raises(Conflict, match="already exists"):
        projects.create("garden")
    with pytest.raises(Conflict, match="not linked to: c"):
        projects.set_defaults("garden", ["a", "c"])
    assert projects.set_defaults("garden", ["a"]).searched == ["a"]
    assert projects.link("garden", ["c"]).collections == ["a", "b", "c"]
    assert projects.unlink("garden", ["a"]).searched == ["b", "c"]
    projects.forget("c")
    assert projects.require("garden").collections == ["b"]
    assert [each.name for each in projects.list_all()] == ["garden"]
    with pytest.raises(NotFound):
        projects.link("other", ["a"])


def test_concurrent_links_are_all_stored(table: Table, tenant: str) -> None:
    projects = ProjectStore(table, tenant)
    projects.create("garden")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: projects.link("garden", [f"c{number}"]), range(8)))
    assert projects.require("garden").collections == [f"c{number}" for number in range(8)]


def test_query_history_is_newest_first(table: Table, tenant: str) -> None:
    history = QueryHistory(table, tenant)
    for number in range(5):
        history.add(f"query {number}", ["notes"], number, "optimal")
    first, cursor = history.page(3, None)
    rest, end = history.page(3, cursor)
    assert sorted(each.query for each in first + rest) == [f"query {number}" for number in range(5)]
    assert [each.asked_at for each in first + rest] == sorted((each.asked_at for each in first + rest), reverse=True)
    assert end is None


def test_job_stores_its_input(table: Table, tenant: str, collection: Collection) -> None:
    jobs = IngestionJobs(table, tenant)
    new = [
        NewKnowledgeDocument(f"{number}.md", f"{TEXT}{number}", hash="h", title="T", tree="t") for number in range(3)
    ]
    job_id = jobs.start(collection, new, ["old.md"])
    job = jobs.require(job_id)
    assert (job.status, job.total, job.collection, jobs.removed_paths(job_id)) == ("queued", 3, "notes", ["old.md"])
    assert list(jobs.documents(job)) == new
    jobs.report(job_id, "done", IngestionTally(added=3, chunks=3), total=3)
    jobs.finish(job)
    texts = keys.partition(tenant, "texts", collection.id)
    assert [item for page in table.query(texts, Keys.after(" ")) for item in page] == []
    done = jobs.require(job_id)
    assert (done.status, done.tally.added, list(jobs.documents(done))) == ("done", 3, [])
    with pytest.raises(NotFound):
        jobs.require("other")
    with pytest.raises(NotFound):
        IngestionJobs(table, f"{tenant}-other").require(job_id)


@pytest.mark.parametrize("position", ["", "\ud800", "\0", "x" * 1500, "é" * 600])
def test_cursors_that_no_list_returned_are_refused_or_end_it(
    table: Table, tenant: str, collections: CollectionStore, documents: CollectionDocuments, position: str
) -> None:
    cursor = cursors.encode(position)
    for page in (collections.page, documents.page, QueryHistory(table, tenant).page):
        with suppress(InvalidParams):
            assert page(5, cursor)[1] is None


def test_listing_reads_projects_once_and_no_more_collections_than_shown(
    table: Table, tenant: str, collections: CollectionStore
) -> None:
    for name in ("a", "b", "c"):
        collection = collections.create(name, "fundamental", recorded_space())
        CollectionDocuments(table, tenant, collection, MemoryIndex()).put(NewKnowledgeDocument("x.md", TEXT))
    ProjectStore(table, tenant).create("garden", ["a", "c"])
    calls: list[str] = []
    with intercept_requests(lambda operation, _: calls.append(operation)):
        first = manage_collections.handler.method.run(
            ManageCollections(action="list", limit=2), Caller("s", frozenset(["reader"]), tenant)
        )
    assert calls == ["Query"] * 4
    assert [(each.name, each.documents, each.chunks, each.projects) for each in first.collections or []] == [
        ("a", 1, 1, ["garden"]),
        ("b", 1, 1, []),
    ]
    assert [each.name for each in collections.page(2, first.next_cursor)[0]] == ["c"]


@pytest.mark.parametrize("days", [2, -2])
def test_job_that_a_wrong_clock_has_dated_is_stalled_until_it_moves(
    table: Table, tenant: str, collection: Collection, days: int
) -> None:
    jobs = IngestionJobs(table, tenant)
    job = jobs.require(jobs.start_reading(collection, "folder", recursive=True))
    now = datetime.now(UTC)
    assert job.status_at(now) == "queued"
    assert job.status_at(now + timedelta(days=days)) == "stalled"
