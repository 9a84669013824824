"""One search over a tenant's documents and knowledge base, and the text of each result by its id.

An id names the kind and the document, so it stays the same while the document exists: `document:{document_id}` or
`knowledge:{collection}#{path}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from shared.aws.dynamodb import Table
from shared.documents.index import COLLECTION, drop_stale_hits
from shared.documents.queries import DocumentQueries
from shared.knowledge.collections import CollectionStore
from shared.knowledge.documents import read_text
from shared.knowledge.recorded_space import recorded_space
from shared.knowledge.search_service import current_revisions
from shared.platform.config import config
from shared.rpc.errors import NotFound
from shared.rpc.strict_json import encodable
from shared.search.index import knowledge_index
from shared.search.passages import SearchQuestion

if TYPE_CHECKING:
    from shared.knowledge.models import Collection
    from shared.search.passages import Passage, SearchHit

_PASSAGES: Final = 40
"""Passages requested. Several of them may belong to one document."""
_MAX_RESULTS: Final = 10
_DOCUMENT: Final = "document:"
_KNOWLEDGE: Final = "knowledge:"


@dataclass(frozen=True, slots=True)
class FoundText:
    """A document that a search found."""

    id: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class WholeText:
    """A document with its text."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


def search_texts(tenant_id: str, query: str) -> list[FoundText]:
    """Return the documents that are relevant to `query`, best first."""
    from shared.answering.relevance import filter_relevant

    store = CollectionStore(Table(config().knowledge_table), tenant_id)
    space = recorded_space()
    collections = {each.id: each for each in store.list_all() if each.space == space}
    question = SearchQuestion(query, tenant_id, (COLLECTION, *collections), _PASSAGES)
    ranking = knowledge_index().search(question)
    unchanged = {hit.passage.id for hit in drop_stale_hits(tenant_id, ranking.hits)}
    revisions = current_revisions(
        store,
        collections,
        {hit.passage.document for hit in ranking.hits if hit.passage.document.collection in collections},
    )

    def is_current(hit: SearchHit) -> bool:
        return hit.passage.id in unchanged or revisions.get(hit.passage.document) == hit.passage.revision

    current = [hit for hit in ranking.hits if is_current(hit)]
    relevant = filter_relevant(query, current, ranking.measure)
    results = {each.id: each for each in (_result(hit.passage, collections) for hit in reversed(relevant))}
    return list(reversed(results.values()))[:_MAX_RESULTS]


def whole_text(tenant_id: str, id_: str) -> WholeText:
    """Return the document of a result's id."""
    if id_.startswith(_DOCUMENT):
        return _shared_document(tenant_id, id_)
    if id_.startswith(_KNOWLEDGE):
        return _knowledge_document(tenant_id, id_)
    raise _unknown(id_)


def _result(passage: Passage, collections: dict[str, Collection]) -> FoundText:
    document = passage.document
    if document.collection == COLLECTION:
        title = passage.title or document.document_id
        return FoundText(_DOCUMENT + document.document_id, title, document_url(document.document_id))
    name = collections[document.collection].name
    title = passage.title or document.document_id
    return FoundText(f"{_KNOWLEDGE}{name}#{document.document_id}", title, knowledge_url(name, document.document_id))


def _shared_document(tenant_id: str, id_: str) -> WholeText:
    document_id = id_.removeprefix(_DOCUMENT)
    try:
        document = DocumentQueries(Table(config().documents_table), tenant_id).document(document_id)
    except NotFound:
        raise _unknown(id_) from None
    metadata = {
        "kind": "document",
        "mime_type": document.content.mime_type,
        "revision": str(document.revision),
        "updated_at": document.updated_at,
    }
    title = document.metadata.get("title") or document_id
    return WholeText(id_, title, document.content.body, document_url(document_id), metadata)


def _knowledge_document(tenant_id: str, id_: str) -> WholeText:
    name, _, path = id_.removeprefix(_KNOWLEDGE).partition("#")
    table = Table(config().knowledge_table)
    collection = CollectionStore(table, tenant_id).find(name)
    read = read_text(table, tenant_id, collection, path) if collection and path else None
    if read is None:
        raise _unknown(id_)
    document, text = read
    metadata = {"kind": "knowledge", "collection": name, "path": path, "updated_at": document.updated_at}
    return WholeText(id_, document.title or path, text, knowledge_url(name, path), metadata)


def document_url(document_id: str) -> str:
    """Return the document's page of the console, or its resource if this server's public address is not known."""
    if not config().public_url:
        return f"agent-data://document/{quote(document_id, safe=':')}"
    return f"{config().public_url}/console/#/documents/{quote(document_id, safe=':')}"


def knowledge_url(collection: str, path: str) -> str:
    """Return the address that the document was read from, or its collection's page or resource."""
    if path.startswith(("https://", "http://")):
        return path
    name = quote(collection, safe="")
    if not config().public_url:
        return f"knowledge://collections/{name}#{quote(path)}"
    return f"{config().public_url}/console/#/knowledge/{name}/{quote(path)}"


def _unknown(id_: str) -> NotFound:
    return NotFound(
        "There is no document with this id.",
        details={"id": encodable(id_)},
        guidance="Take an id from a result of search. A document that was deleted or moved has none.",
    )
