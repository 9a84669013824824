"""Keys of the memory table. Every partition key starts with the tenant.

    pk                             sk                    item
    {tenant}#conversation#{id}     conversation          the header: generation, and number of the last message
    {tenant}#conversations         {id}                  an entry in the list of the tenant's conversations
    {tenant}#messages#{generation} message#000000000001  one message
    {tenant}#messages#{generation} summary               the summary
    {tenant}#purge                 purge#{generation}    a past generation, whose items are to be deleted

A generation is the time between two clearings. Clearing starts a new one: from then on no item of the old one is
visible, however many there are, including those that concurrent writers still add.
"""

from typing import Final

HEADER: Final = "conversation"
SUMMARY: Final = "summary"
MESSAGE: Final = "message#"
PURGE: Final = "purge#"
LAST_NUMBER: Final = 999_999_999_999


def conversation(tenant_id: str, conversation_id: str) -> str:
    """Return the partition key of a conversation's header."""
    return f"{tenant_id}#conversation#{conversation_id}"


def conversations(tenant_id: str) -> str:
    """Return the partition key of the list of a tenant's conversations."""
    return f"{tenant_id}#conversations"


def messages(tenant_id: str, generation: str) -> str:
    """Return the partition key of a generation's messages and summary."""
    return f"{tenant_id}#messages#{generation}"


def purges(tenant_id: str) -> str:
    """Return the partition key of a tenant's past generations."""
    return f"{tenant_id}#purge"


def message(number: int) -> str:
    """Return the sort key of a message."""
    return f"{MESSAGE}{number:012d}"


def number(sk: str) -> int:
    """Return the number of the message with a sort key."""
    return int(sk.removeprefix(MESSAGE))
