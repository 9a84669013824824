"""Stores of the knowledge base of the caller's tenant."""

from shared.aws.dynamodb import Table
from shared.knowledge.collections import CollectionStore
from shared.knowledge.projects import ProjectStore
from shared.platform.config import config
from shared.rpc.caller import Caller


def knowledge_table() -> Table:
    """Return the table of the knowledge base."""
    return Table(config().knowledge_table)


def collections(caller: Caller) -> CollectionStore:
    """Return the collections of the caller's tenant."""
    return CollectionStore(knowledge_table(), caller.tenant_id)


def projects(caller: Caller) -> ProjectStore:
    """Return the projects of the caller's tenant."""
    return ProjectStore(knowledge_table(), caller.tenant_id)
