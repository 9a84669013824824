"""One search over a tenant's documents and knowledge base, and the text of each result by its id.

An id names the kind and the document, so it stays the same while the document exists: `document:{document_id}` or
`knowledge:{collection}#{path}`. With `include_messages`, `message:{conversation_id}#{message_id}` is a message of a
conversation, whose text has the messages around it.
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
_MESSAGE: Final = "message:"
_MESSAGES: Final = 5
"""Messages among the results, after the documents."""
_RELEVANT_SCORE: Final = 0.3
_NEIGHBOURS: Final = 5
"""The messages before and after a message whose text is read."""
_TITLE_CHARACTERS: Final = 80


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


def search_texts(tenant_id: str, query: str, *, include_messages: bool = False) -> list[FoundText]:
    """Return the documents that are relevant to `query`, best first, and after them messages if they are included."""
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
    documents = list(reversed(results.values()))
    messages = _found_messages(tenant_id, query) if include_messages else []
    return documents[: _MAX_RESULTS - len(messages)] + messages


def whole_text(tenant_id: str, id_: str, *, include_messages: bool = False) -> WholeText:
    """Return the document of a result's id, or the message with `include_messages`."""
    if include_messages and id_.startswith(_MESSAGE):
        return _message(tenant_id, id_)
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


def _found_messages(tenant_id: str, query: str) -> list[FoundText]:
    from shared.memory.conversations import Conversations
    from shared.memory.search import MessageSearch
    from shared.search.message_index import MessageFilter

    search = MessageSearch(Conversations(Table(config().memory_table), tenant_id), MessageFilter(), _MESSAGES, 0)
    found = search.answer(query)
    texts = [
        FoundText(
            f"{_MESSAGE}{each.conversation_id}#{each.message_id}",
            f"{each.name or each.role}: {each.content[:_TITLE_CHARACTERS]}",
            conversation_url(each.conversation_id),
        )
        for each in found.messages + (found.not_yet_indexed or [])
        if found.degraded or each.score is None or each.score >= _RELEVANT_SCORE
    ]
    return texts[:_MESSAGES]


def _message(tenant_id: str, id_: str) -> WholeText:
    from shared.memory import keys
    from shared.memory.conversations import Conversations
    from shared.memory.message_history import is_message
    from shared.memory.message_ids import number_of

    conversation_id, _, message_id = id_.removeprefix(_MESSAGE).rpartition("#")
    conversations = Conversations(Table(config().memory_table), tenant_id)
    header = conversations.visible([conversation_id]).get(conversation_id) if conversation_id else None
    number = number_of(message_id, header.generation) if header else None
    if header is None or number is None:
        raise _unknown(id_)
    partition = keys.messages(tenant_id, header.generation)
    numbers = range(max(1, number - _NEIGHBOURS), number + _NEIGHBOURS + 1)
    items = filter(is_message, conversations.table.get_all((partition, keys.message(each)) for each in numbers))
    messages = {keys.number(item["sk"]): item for item in items}
    if number not in messages:
        raise _unknown(id_)
    lines = [f"{each.get('name') or each['role']}: {each['content']}" for _, each in sorted(messages.items())]
    message = messages[number]
    title = f"{message.get('name') or message['role']}: {message['content'][:_TITLE_CHARACTERS]}"
    metadata = {"kind": "message", "conversation_id": conversation_id, "at": message["at"]}
    return WholeText(id_, title, "\n\n".join(lines), conversation_url(conversation_id), metadata)


def conversation_url(conversation_id: str) -> str:
    """Return the conversation's page of the console, or its resource if this server's public address is not known."""
    if not config().public_url:
        return f"memory://conversation/{quote(conversation_id, safe=':@')}"
    return f"{config().public_url}/console/#/conversations/{quote(conversation_id, safe=':')}"


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
