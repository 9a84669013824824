"""Indexed documents of the caller's collections."""

from research_agent.stores import knowledge_table
from shared.knowledge.documents import CollectionDocuments
from shared.knowledge.models import Collection
from shared.rpc.caller import Caller
from shared.search.index import knowledge_index


def documents(caller: Caller, collection: Collection) -> CollectionDocuments:
    """Return the documents of one of the caller's collections."""
    return CollectionDocuments(knowledge_table(), caller.tenant_id, collection, knowledge_index())
