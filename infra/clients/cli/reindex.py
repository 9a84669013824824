"""`kho reindex`: bring the index up to date with DynamoDB."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from infra.clients.cli.index_record import record_splitter
from infra.clients.cli.target import DEFAULT_TARGET, AsJson, DataTarget, exit_with_error, open_stores
from infra.local.search_engine.index_process import is_readable
from shared.aws.dynamodb import Table
from shared.documents import index as document_index
from shared.documents import keys as document_keys
from shared.experiences import index as experience_index
from shared.experiences import keys as experience_keys
from shared.knowledge import keys as knowledge_keys
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.recorded_space import recorded_space
from shared.memory import keys as memory_keys
from shared.memory.conversations import Conversations
from shared.memory.index import rebuild_conversation
from shared.platform.config import ConfigurationError, config
from shared.platform.lanes import bulk_lane
from shared.search import exhaustive_search, message_index
from shared.search.embedding.document_embedder import document_space
from shared.search.embedding.models import current_space
from shared.search.index import close_index, knowledge_index, scope_of
from shared.search.passages import DocumentRef
from shared.search.store import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.knowledge.models import Collection

_EXPERIENCES: Final = "experiences"
_MESSAGES: Final = "messages"
_PARTS: Final = ("indexed", "unchanged", "removed")


def reindex(
    *,
    tenant: str = "",
    collection: str = "",
    force: Annotated[bool, Parameter(name="--anew", negative=())] = False,
    target: DataTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Bring the index up to date with DynamoDB: index missing documents and remove deleted ones.

    Passages of an earlier version's splitter are made again. The command can be interrupted and repeated. It skips
    documents that are up to date. Stop a 'kho serve' that runs
    on the data folder first, unless its index is a Qdrant server.

    Args:
        tenant: Only this tenant.
        collection: Only this collection of research-agent, or 'agent-data' for documents, or, without a tenant,
            'experiences'; 'messages' for the messages of conversations.
        force: Also index documents that are up to date.
    """
    with open_stores(target) as running:
        if not config().has_index:
            exit_with_error("No index is configured: deploy with QdrantUrl, or set KHO_QDRANT_URL.")
        if running and not config().qdrant_url:
            exit_with_error("The running 'kho serve' has locked the index: stop it first, and restart it afterwards.")
        try:
            reindexer = _Reindexer(tenant, collection, force=force)
            if not config().qdrant_url:
                reindexer.remove_damaged_indexes()
            with bulk_lane():
                done = reindexer.run()
        except ConfigurationError as error:
            exit_with_error(f"{error}.")
        finally:
            close_index()
            message_index.close_message_index()
    if as_json:
        print(json.dumps({part: done[part] for part in _PARTS}))
    else:
        print(f"{done['indexed']} documents indexed, {done['unchanged']} unchanged, {done['removed']} removed.")


@dataclass(frozen=True, slots=True)
class _IndexTask:
    """The reindexing of one document: `scope` selects its points, `rebuild` returns whether the index was stale."""

    scope: Scope
    rebuild: Callable[[], bool]


@dataclass(slots=True)
class _Reindexer:
    """One run of `kho reindex`.

    The index is listed before the tables, so that documents added meanwhile are not taken for deleted ones.
    """

    tenant: str
    collection: str
    force: bool
    done: Counter[str] = field(default_factory=Counter)
    rebuilt: set[str] = field(default_factory=set)
    """The ids of the collections that are rebuilt."""
    generations: set[tuple[str, str]] = field(default_factory=set)
    """The tenants and the generations of the conversations that exist."""

    @property
    def has_experiences(self) -> bool:
        """True if the experiences are indexed, all of them in an index of their own."""
        return not self.tenant and self.collection in ("", _EXPERIENCES)

    @property
    def has_passages(self) -> bool:
        """True if documents or collections are indexed."""
        return bool(self.tenant) or self.collection not in (_EXPERIENCES, _MESSAGES)

    @property
    def has_messages(self) -> bool:
        """True if the messages of conversations are indexed, in an index of their own."""
        return config().has_message_index and self.collection in ("", _MESSAGES)

    def remove_damaged_indexes(self) -> None:
        """Remove the embedded indexes of this run that cannot be read. They are made again if all of it is indexed."""
        folder, space = Path(config().qdrant_folder), current_space()
        indexes = []
        if self.has_passages:
            indexes.append((folder, space, not (self.tenant or self.collection)))
        if self.has_experiences:
            indexes.append((folder / experience_index.COLLECTION, document_space(space), True))
        if self.has_messages:
            indexes.append((folder / message_index.INDEX, space, not self.tenant))
        for index_folder, index_space, is_made_again in indexes:
            if is_readable(index_space, index_folder):
                continue
            if not is_made_again:
                exit_with_error(f"The index in {index_folder} is damaged: omit --tenant and --collection.")
            print(f"The index in {index_folder} is damaged: it is made again.", file=sys.stderr)
            shutil.rmtree(index_folder / "shard", ignore_errors=True)
            (index_folder / "space.json").unlink(missing_ok=True)

    def run(self) -> Counter[str]:
        """Rebuild the index with a progress bar. Return the numbers of indexed, unchanged and removed documents."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        orphans = knowledge_index().documents(self.tenant) if self.has_passages else set()
        generations = message_index.message_index().generations(self.tenant) if self.has_messages else set()
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            for name, tasks in self._collections():
                for task in progress.track(tasks, description=escape(name)):
                    orphans.discard(task.scope)
                    self.done["indexed" if task.rebuild() else "unchanged"] += 1
        for tenant_id, generation in generations - self.generations:
            message_index.message_index().remove_generation(tenant_id, generation)
            self.done["removed"] += 1
        for scope in orphans:
            if not self.collection or self.rebuilt.intersection(scope.collections or ()):
                knowledge_index().erase(scope)
                self.done["removed"] += 1
        if not (self.tenant or self.collection):
            record_splitter()
        return self.done

    def _collections(self) -> Iterator[tuple[str, list[_IndexTask]]]:
        """Yield each collection's tasks. The caller runs them before it requests the next collection."""
        if self.collection in ("", document_index.COLLECTION):
            self.rebuilt.add(document_index.COLLECTION)
            yield document_index.COLLECTION, list(self._documents())
        if self.has_experiences:
            yield from self._experiences()
        if self.has_messages:
            yield _MESSAGES, list(self._conversations())
        if not self.has_passages:
            return
        table = Table(config().knowledge_table)
        for pk, name in list(table.keys(knowledge_keys.partition(self.tenant, "collections"))):
            tenant_id = pk.removesuffix(knowledge_keys.partition("", "collections"))
            collection = CollectionStore(table, tenant_id).find(name)
            if collection is None or self.tenant not in ("", tenant_id) or self.collection not in ("", name):
                continue
            self.rebuilt.add(collection.id)
            yield f"{tenant_id}: {name}", list(self._collection_documents(table, tenant_id, collection))
            CollectionStore(table, tenant_id).record_space(collection, recorded_space())

    def _experiences(self) -> Iterator[tuple[str, list[_IndexTask]]]:
        def index(id_: str) -> bool:
            search = exhaustive_search.open_exhaustive_search(experience_index.COLLECTION)
            return experience_index.index_experience(id_, force=self.force or search.is_outdated(id_))

        scope = partial(exhaustive_search.scope_of, experience_index.COLLECTION)
        ids = [id_ for _, id_ in Table(config().experiences_table).keys(experience_keys.CONTENT)]
        if ids:
            yield _EXPERIENCES, [_IndexTask(scope(id_), partial(index, id_)) for id_ in ids]
            exhaustive_search.open_exhaustive_search(experience_index.COLLECTION).close()

    def _conversations(self) -> Iterator[_IndexTask]:
        table = Table(config().memory_table)
        for pk, _ in table.keys(memory_keys.conversation(self.tenant, ""), memory_keys.HEADER):
            tenant_id, _, conversation_id = pk.partition(memory_keys.conversation("", ""))
            if self.tenant in ("", tenant_id):
                scope = Scope(tenant_id, (conversation_id,))
                yield _IndexTask(scope, partial(self._rebuild_conversation, table, tenant_id, conversation_id))

    def _rebuild_conversation(self, table: Table, tenant_id: str, conversation_id: str) -> bool:
        conversations = Conversations(table, tenant_id)
        header = conversations.stored(conversation_id)
        if header is None:
            return False
        self.generations.add((tenant_id, header.generation))
        return rebuild_conversation(conversations, conversation_id, force=self.force)

    def _documents(self) -> Iterator[_IndexTask]:
        def refresh(document: DocumentRef) -> bool:
            force = self._is_forced(document)
            return document_index.refresh_document(document.tenant_id, document.document_id, force=force)

        prefix = document_keys.document(self.tenant, "")
        for pk, _ in Table(config().documents_table).keys(prefix, document_keys.DOCUMENT):
            tenant_id, document_id = document_keys.document_of(pk)
            if self.tenant in ("", tenant_id):
                document = DocumentRef(tenant_id, document_index.COLLECTION, document_id)
                yield _IndexTask(scope_of(document), partial(refresh, document))

    def _collection_documents(self, table: Table, tenant_id: str, collection: Collection) -> Iterator[_IndexTask]:
        documents = CollectionDocuments(table, tenant_id, collection, knowledge_index())

        def rebuild(document: DocumentRef) -> bool:
            return documents.rebuild(document.document_id, force=self._is_forced(document))

        for path in documents.paths():
            document = DocumentRef(tenant_id, collection.id, path)
            yield _IndexTask(scope_of(document), partial(rebuild, document))

    def _is_forced(self, document: DocumentRef) -> bool:
        return self.force or knowledge_index().is_outdated(document)
