"""Conversations of the caller's tenant."""

from shared.aws.dynamodb import Table
from shared.memory.conversations import Conversations
from shared.platform.config import config
from shared.rpc.caller import Caller


def conversations(caller: Caller) -> Conversations:
    """Return the conversations of the caller's tenant."""
    return Conversations(Table(config().memory_table), caller.tenant_id)
