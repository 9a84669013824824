"""Collections, documents and projects in the real store: what is kept, whoever writes at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from shared.config import config
from shared.dynamodb import Keys, Table
from shared.knowledge import keys
from shared.knowledge.collections import Collections
from shared.knowledge.documents import Documents
from shared.knowledge.history import QueryHistory
from shared.knowledge.ingesting import Ingestion
from shared.knowledge.jobs import Jobs
from shared.knowledge.models import Collection, NewDocument, Tally
from shared.knowledge.projects import Projects
from shared.knowledge.space import current_space
from shared.rpc.errors import Conflict, InvalidRequest, NotFound, OutOfTime, TooLarge
from tests.passages import MemoryIndex

TEXT = "# Guide\n\nHow to water plants.\n"


@pytest.fixture
def table() -> Table:
    return Table(config().knowledge_table)


@pytest.fixture
def collections(table: Table, tenant: str) -> Collections:
    return Collections(table, tenant)


@pytest.fixture
def collection(collections: Collections) -> Collection:
    return collections.create("notes", "fundamental", current_space())


@pytest.fixture
def index() -> MemoryIndex:
    return MemoryIndex()


@pytest.fixture
def documents(table: Table, tenant: str, collection: Collection, index: MemoryIndex) -> Documents:
    return Documents(table, tenant, collection, index)


def test_a_collection_has_one_name(collections: Collections, collection: Collection) -> None:
    assert collections.require("notes", current_space()) == collection
    with pytest.raises(Conflict, match="already exists"):
        collections.create("notes", "fundamental", current_space())
    with pytest.raises(NotFound):
        collections.require("other")
    with pytest.raises(Conflict, match="was embedded with"):
        collections.require("notes", replace(current_space(), dimensions=1024))


def test_ten_creators_make_one_collection(collections: Collections) -> None:
    def create(_: int) -> bool:
        try:
            collections.create("one", "project-specific", current_space())
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(create, range(10))) == 1


def test_tenants_do_not_meet(table: Table, tenant: str, collection: Collection, index: MemoryIndex) -> None:
    other = Collections(table, f"{tenant}-other")
    assert other.listed() == []
    mine = Documents(table, tenant, collection, index)
    mine.put(NewDocument("a.md", TEXT))
    assert Documents(table, f"{tenant}-other", collection, index).page(10) == ([], None)
    with pytest.raises(NotFound):
        other.delete("notes")


def test_bringing_in_twice_changes_nothing(documents: Documents, index: MemoryIndex) -> None:
    assert documents.put(NewDocument("a.md", TEXT)).outcome == "added"
    before = documents.find("a.md")
    assert before is not None
    assert (before.title, before.chunks, before.revision, before.indexed) == ("Guide", 1, 1, True)
    assert documents.put(NewDocument("a.md", TEXT)).outcome == "unchanged"
    assert documents.find("a.md") == before
    assert index.replaced == 1


def test_who_brings_the_same_in_last_says_which_tree_it_is_of(documents: Documents, index: MemoryIndex) -> None:
    trees = []
    for tree in ("", "mine", "yours", ""):
        documents.put(NewDocument("a.md", TEXT, tree=tree))
        stored = documents.find("a.md")
        assert stored is not None
        trees.append(stored.tree)
    assert trees == ["", "mine", "yours", "yours"]
    assert index.replaced == 1


def test_a_change_replaces_and_a_removal_forgets(
    documents: Documents, index: MemoryIndex, tenant: str, table: Table, collection: Collection
) -> None:
    def texts() -> int:
        return sum(len(page) for page in table.query(keys.texts(tenant, collection.id), Keys.after(" ")))

    documents.put(NewDocument("a.md", TEXT * 40))
    assert index.count(tenant) > 1
    assert documents.put(NewDocument("a.md", TEXT)).outcome == "updated"
    assert (index.count(tenant), texts()) == (1, 1)
    assert documents.remove("a.md")
    assert not documents.remove("a.md")
    assert (index.count(tenant), texts()) == (0, 0)
    assert documents.page(10) == ([], None)
    assert documents.put(NewDocument("a.md", TEXT)).outcome == "added"
    assert index.count(tenant) == 1


def test_writers_at_once_leave_one_of_each(
    documents: Documents, index: MemoryIndex, tenant: str, table: Table, collection: Collection
) -> None:
    new = [NewDocument(f"{number}.md", f"{TEXT}{number}") for number in range(10)]
    with ThreadPoolExecutor(8) as pool:
        outcomes = [each.outcome for each in pool.map(documents.put, new * 4)]
    assert outcomes.count("added") == 10
    assert index.count(tenant) == 10
    assert documents.size() == (10, 10)
    texts = [item for page in table.query(keys.texts(tenant, collection.id), Keys.after(" ")) for item in page]
    assert len(texts) == 10


def test_writers_of_different_texts_end_with_one_of_them(documents: Documents, index: MemoryIndex, tenant: str) -> None:
    """Of ten writers, each loses to the nine others at most: all get in, within the ten attempts that each has."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(documents.put, [NewDocument("a.md", f"version {number}") for number in range(10)]))
    stored = documents.find("a.md")
    assert stored is not None
    assert stored.revision == 10
    assert stored.indexed
    assert index.count(tenant) == 1


def test_what_the_index_missed_is_indexed_later(
    documents: Documents, index: MemoryIndex, tenant: str, table: Table
) -> None:
    documents.put(NewDocument("gone.md", TEXT))
    index.down = True
    assert documents.put(NewDocument("a.md", TEXT)).pending
    assert documents.remove("gone.md")
    waiting = [item["path"] for page in table.query(keys.work(tenant), Keys.beginning(keys.INDEX)) for item in page]
    assert sorted(waiting) == ["a.md", "gone.md"]
    index.down = False
    assert [documents.reindex(path) for path in waiting] == [True, True]
    assert [documents.reindex(path) for path in waiting] == [False, False]
    assert index.count(tenant) == 1
    stored = documents.find("a.md")
    assert stored is not None
    assert stored.indexed


def test_bringing_in_again_indexes_what_was_not(documents: Documents, index: MemoryIndex, tenant: str) -> None:
    index.down = True
    documents.put(NewDocument("a.md", TEXT))
    index.down = False
    assert documents.put(NewDocument("a.md", TEXT)).outcome == "updated"
    assert documents.put(NewDocument("a.md", TEXT)).outcome == "unchanged"
    assert index.count(tenant) == 1


def test_running_out_of_time_is_no_fault_of_a_document(
    documents: Documents, index: MemoryIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object) -> bool:
        raise OutOfTime

    with monkeypatch.context() as patched:
        patched.setattr(index, "replace", late)
        with pytest.raises(OutOfTime):
            Ingestion(documents).bring(NewDocument("a.md", TEXT))
    again = Ingestion(documents)
    again.bring(NewDocument("a.md", TEXT))
    assert (again.tally.updated, again.tally.failed) == (1, [])


def test_large_texts_are_kept_whole(documents: Documents, index: MemoryIndex, tenant: str) -> None:
    import random

    chosen = random.Random(4)
    large = " ".join(f"{chosen.getrandbits(64):x}" for _ in range(60_000))
    documents.put(NewDocument("large.txt", large))
    before = index.count(tenant)
    assert documents.reindex("large.txt", anew=True)
    assert index.count(tenant) == before > 1000
    with pytest.raises(TooLarge):
        documents.put(NewDocument("x.txt", "x" * (4 << 20) + "x"))
    with pytest.raises(InvalidRequest, match="holds no text"):
        documents.put(NewDocument("x.txt", " \n "))


def test_documents_are_listed_in_pages(documents: Documents) -> None:
    for number in range(7):
        documents.put(NewDocument(f"{number}.md", TEXT))
    documents.remove("3.md")
    first, cursor = documents.page(4)
    rest, end = documents.page(4, cursor)
    assert [each.path for each in first + rest] == [f"{number}.md" for number in (0, 1, 2, 4, 5, 6)]
    assert end is None
    assert set(documents.told("hash", ["1.md", "3.md", "x.md"])) == {"1.md"}


def test_a_collection_that_is_deleted_is_gone(
    collections: Collections, documents: Documents, tenant: str, table: Table, collection: Collection
) -> None:
    documents.put(NewDocument("a.md", TEXT))
    collections.delete("notes")
    assert collections.find("notes") is None
    again = collections.create("notes", "fundamental", current_space())
    assert again.id != collection.id
    collections.purge(collection.id)
    for partition in (keys.documents(tenant, collection.id), keys.texts(tenant, collection.id)):
        assert [item for page in table.query(partition, Keys.after(" ")) for item in page] == []


def test_projects(table: Table, tenant: str) -> None:
    projects = Projects(table, tenant)
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
    assert [each.name for each in projects.listed()] == ["garden"]
    with pytest.raises(NotFound):
        projects.link("other", ["a"])


def test_links_made_at_once_are_all_kept(table: Table, tenant: str) -> None:
    projects = Projects(table, tenant)
    projects.create("garden")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: projects.link("garden", [f"c{number}"]), range(8)))
    assert projects.require("garden").collections == [f"c{number}" for number in range(8)]


def test_queries_are_remembered_newest_first(table: Table, tenant: str) -> None:
    history = QueryHistory(table, tenant)
    for number in range(5):
        history.note(f"query {number}", ["notes"], number, "optimal")
    first, cursor = history.page(3, None)
    rest, end = history.page(3, cursor)
    assert sorted(each.query for each in first + rest) == [f"query {number}" for number in range(5)]
    assert [each.asked_at for each in first + rest] == sorted((each.asked_at for each in first + rest), reverse=True)
    assert end is None


def test_a_job_keeps_what_it_is_to_do(table: Table, tenant: str, collection: Collection) -> None:
    jobs = Jobs(table, tenant)
    new = [NewDocument(f"{number}.md", f"{TEXT}{number}", hash="h", title="T", tree="t") for number in range(3)]
    job_id = jobs.start(collection, new, ["old.md"])
    job = jobs.require(job_id)
    assert (job.status, job.total, job.collection, jobs.removed(job_id)) == ("queued", 3, "notes", ["old.md"])
    assert list(jobs.todo(job)) == new
    jobs.report(job_id, "done", Tally(added=3, chunks=3), total=3)
    jobs.finish(job)
    texts = keys.texts(tenant, collection.id)
    assert [item for page in table.query(texts, Keys.after(" ")) for item in page] == []
    done = jobs.require(job_id)
    assert (done.status, done.tally.added, list(jobs.todo(done))) == ("done", 3, [])
    with pytest.raises(NotFound):
        jobs.require("other")
    with pytest.raises(NotFound):
        Jobs(table, f"{tenant}-other").require(job_id)
