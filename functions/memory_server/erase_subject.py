"""memory-server/memory/erase_subject: erase all conversations of a subject, such as a person."""

from api.deployment import lambda_function, table
from api.handler import method
from memory_server.stores import conversations
from shared.memory.models import Subject, SubjectErasure
from shared.rpc.caller import Caller
from shared.rpc.method import Params


class EraseSubject(Params):
    """The subject, as conversations were given it."""

    subject: Subject


@lambda_function(table("Memory", "GetItem", "PutItem", "Query", "UpdateItem"))
@method("memory-server/memory/erase_subject", role="admin", example={"subject": "person:17"})
def handler(params: EraseSubject, caller: Caller) -> SubjectErasure:
    """Hide all conversations of a subject at once, and begin to delete them. Called again, tell how many are left."""
    return conversations(caller).subjects.erase(params.subject, caller.sub)
