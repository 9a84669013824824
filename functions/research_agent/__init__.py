"""research-agent: a knowledge base of documents (seed 004)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.config import config
from shared.dynamodb import Table
from shared.knowledge.collections import Collections
from shared.knowledge.documents import Documents
from shared.knowledge.index import knowledge_index
from shared.knowledge.jobs import Jobs
from shared.knowledge.projects import Projects

if TYPE_CHECKING:
    from shared.knowledge.models import Collection
    from shared.rpc.caller import Caller


def table() -> Table:
    """Where everything of the knowledge base is kept."""
    return Table(config().knowledge_table)


def collections(caller: Caller) -> Collections:
    """The collections of the caller's tenant."""
    return Collections(table(), caller.tenant_id)


def documents(caller: Caller, collection: Collection) -> Documents:
    """The documents of one of the caller's collections."""
    return Documents(table(), caller.tenant_id, collection, knowledge_index())


def projects(caller: Caller) -> Projects:
    """The projects of the caller's tenant."""
    return Projects(table(), caller.tenant_id)


def jobs(caller: Caller) -> Jobs:
    """The ingestions of the caller's tenant."""
    return Jobs(table(), caller.tenant_id)
