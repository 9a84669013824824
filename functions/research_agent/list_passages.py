"""research-agent/list_passages: a document's passages as they are searched, in order."""

from typing import Annotated

from pydantic import Field

from api.deployment import SEARCH_INDEX, lambda_function, table
from api.handler import method
from research_agent.index import documents
from research_agent.stores import collections
from shared.knowledge.errors import not_in_collection, not_searchable
from shared.knowledge.models import Name, Path
from shared.knowledge.query_responses import IndexedPassage, PassagePage
from shared.rpc import cursor as cursors
from shared.rpc.caller import Caller
from shared.rpc.cursor import PageParams
from shared.rpc.errors import NotFound, Unavailable
from shared.rpc.response_size import SizeBudget, take_page


class ListPassages(PageParams):
    """A document of a collection, and a page of its passages."""

    collection_name: Annotated[Name, Field(description="The collection of the document.")]
    path: Path


@lambda_function(table("Knowledge", "GetItem"), SEARCH_INDEX)
@method(
    "research-agent/list_passages",
    role="reader",
    errors=(NotFound, Unavailable),
    example={"collection_name": "garden", "path": "ferns.md"},
)
def handler(params: ListPassages, caller: Caller) -> PassagePage:
    """List the passages of the document's current revision. While it is being indexed, some or all are missing."""
    collection = collections(caller).require(params.collection_name)
    stored = documents(caller, collection)
    document = stored.find(params.path)
    if document is None:
        raise not_in_collection(collection.name, params.path)
    start = 0
    if params.cursor:
        revision, start = cursors.decode(params.cursor, int, int)
        if revision != document.revision or start >= document.chunks:
            raise cursors.stale()
    stop = min(start + params.limit, document.chunks)
    try:
        passages = [IndexedPassage.of(each) for each in stored.passages(document, start, stop)]
    except Unavailable:
        raise not_searchable() from None
    page, following = take_page(passages, None, SizeBudget(document))
    after = following.chunk_sequence_id - 1 if following else stop
    return PassagePage(document, page, cursors.encode(document.revision, after) if after < document.chunks else None)
