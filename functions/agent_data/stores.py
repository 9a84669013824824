"""Documents of the caller's tenant."""

from shared.aws.dynamodb import Table
from shared.documents.queries import DocumentQueries
from shared.documents.unit_of_work import UnitOfWork
from shared.platform.config import config
from shared.rpc.caller import Caller


def unit_of_work(caller: Caller) -> UnitOfWork:
    """Open a unit of work on the documents of the caller's tenant."""
    return UnitOfWork(Table(config().documents_table), caller.tenant_id)


def document_queries(caller: Caller) -> DocumentQueries:
    """Return read access to the documents of the caller's tenant."""
    return DocumentQueries(Table(config().documents_table), caller.tenant_id)
