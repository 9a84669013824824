"""Another writer of a knowledge base acts between what a writer has read and what it writes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from shared.aws.dynamodb import ConditionFailed, Keys, Table
from shared.knowledge import keys
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.ingestion_jobs import IngestionJobs
from shared.knowledge.models import Collection, IngestionTally, NewKnowledgeDocument
from shared.knowledge.projects import ProjectStore
from shared.knowledge.recorded_space import recorded_space
from shared.rpc.errors import Conflict, NotFound
from tests.helpers.interference import another_caller
from tests.helpers.memory_index import MemoryIndex

if TYPE_CHECKING:
    from shared.knowledge.collections import CollectionStore

PATH = "a.md"


@pytest.fixture
def documents(table: Table, tenant: str, collection: Collection) -> CollectionDocuments:
    return CollectionDocuments(table, tenant, collection, MemoryIndex())


@pytest.fixture
def projects(table: Table, tenant: str) -> ProjectStore:
    return ProjectStore(table, tenant)


def document(text: str, tree: str = "") -> NewKnowledgeDocument:
    return NewKnowledgeDocument(PATH, f"# Guide\n\n{text}\n", tree=tree)


def stored_texts(table: Table, tenant: str, collection: Collection) -> int:
    return sum(len(page) for page in table.query(keys.partition(tenant, "texts", collection.id), Keys.after(" ")))


@pytest.mark.parametrize("exists", [False, True])
def test_document_that_another_writer_just_stored_gets_the_next_revision(
    documents: CollectionDocuments, table: Table, tenant: str, collection: Collection, exists: bool
) -> None:
    """No revision has two texts, and no text remains that no document names."""
    if exists:
        documents.put(document("Before."))
    writes = 2  # of a text's part, and of the document's item
    with another_caller(lambda: documents.put(document("Theirs.")), before="PutItem", at=writes):
        assert documents.put(document("Mine.")).outcome == "updated"
    stored = documents.find(PATH)
    assert stored
    assert (stored.revision, stored.indexed) == (3 if exists else 2, True)
    assert stored_texts(table, tenant, collection) == 1


def test_document_that_was_just_replaced_is_removed_in_its_newest_revision(
    documents: CollectionDocuments, table: Table, tenant: str, collection: Collection
) -> None:
    documents.put(document("Before."))
    with another_caller(lambda: documents.put(document("Theirs.")), before="PutItem"):
        assert documents.remove(PATH)
    assert documents.find(PATH) is None
    assert stored_texts(table, tenant, collection) == 0
    assert documents.put(document("After.")).outcome == "added"
    again = documents.find(PATH)
    assert again
    assert again.revision == 4, "after two texts and a tombstone"


def test_attribute_of_a_document_that_was_just_replaced_is_not_changed(documents: CollectionDocuments) -> None:
    """The mark of an indexed revision, for one, would hide that the newer one is not indexed."""
    documents.put(document("Same.", tree="mine"))
    with another_caller(lambda: documents.put(document("Other.", tree="theirs")), before="UpdateItem"):
        documents.put(document("Same.", tree="yours"))
    stored = documents.find(PATH)
    assert stored
    assert stored.tree == "theirs"


def test_mark_of_a_document_that_was_just_removed_brings_nothing_back(documents: CollectionDocuments) -> None:
    with another_caller(lambda: documents.remove(PATH), before="UpdateItem"):
        documents.put(document("Mine."))
    assert documents.find(PATH) is None


def test_collection_that_another_caller_just_created_is_not_replaced(collections: CollectionStore) -> None:
    with (
        another_caller(lambda: collections.create("new", "fundamental", recorded_space()), before="PutItem"),
        pytest.raises(Conflict, match="already exists"),
    ):
        collections.create("new", "project-specific", recorded_space())
    assert collections.require("new").type == "fundamental"


def test_collection_that_another_caller_just_replaced_is_not_deleted(
    collections: CollectionStore, collection: Collection
) -> None:
    def replace_collection() -> None:
        collections.delete("notes")
        collections.create("notes", "fundamental", recorded_space())

    with another_caller(replace_collection, before="TransactWriteItems"), pytest.raises(NotFound):
        collections.delete("notes")
    assert collections.require("notes").id != collection.id


@pytest.mark.parametrize("is_replaced", [False, True])
def test_space_of_a_collection_that_was_just_deleted_is_not_recorded(
    collections: CollectionStore, collection: Collection, is_replaced: bool
) -> None:
    def end() -> None:
        collections.delete("notes")
        if is_replaced:
            collections.create("notes", "fundamental", recorded_space())

    with another_caller(end, before="UpdateItem"):
        collections.record_space(collection, replace(recorded_space(), dimensions=7))
    assert [each.space for each in collections.list_all()] == ([recorded_space()] if is_replaced else [])


def test_project_that_another_caller_just_created_is_not_replaced(projects: ProjectStore) -> None:
    with (
        another_caller(lambda: projects.create("garden", ["theirs"]), before="PutItem"),
        pytest.raises(Conflict, match="already exists"),
    ):
        projects.create("garden", ["mine"])
    assert projects.require("garden").collections == ["theirs"]


def test_links_of_two_callers_are_both_stored(projects: ProjectStore) -> None:
    projects.create("garden")
    with another_caller(lambda: projects.link("garden", ["theirs"]), before="PutItem"):
        assert projects.link("garden", ["mine"]).collections == ["mine", "theirs"]
    assert projects.require("garden").collections == ["mine", "theirs"]


def test_report_of_a_job_that_was_just_deleted_brings_nothing_back(
    table: Table, tenant: str, collection: Collection
) -> None:
    jobs = IngestionJobs(table, tenant)
    job_id = jobs.start(collection, [document("Mine.")], [])
    place = keys.partition(tenant, "job", job_id), keys.JOB

    def report() -> None:
        jobs.report(job_id, "done", IngestionTally(), total=1)

    report()
    assert jobs.require(job_id).status == "done"
    with another_caller(lambda: table.delete_all([place]), before="UpdateItem"), pytest.raises(ConditionFailed):
        report()
    assert table.get(*place) is None
