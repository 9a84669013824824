"""Where each part of a conversation lies in the table; every key starts from the tenant.

    pk                             sk                    item
    {tenant}#conversation#{id}     conversation          its generation, and the number of its last message
    {tenant}#conversations         {id}                  that it exists: the list of a tenant's conversations
    {tenant}#messages#{generation} message#000000000001  one message
    {tenant}#messages#{generation} summary               the summary
    {tenant}#purge                 purge#{generation}    that a generation is over: its items are to be deleted

A generation is what lies between two clearings. Clearing sets a new one, so that nothing of before can be
seen from then on, however much there was and whoever was still writing.
"""

from __future__ import annotations

from typing import Final

HEADER: Final = "conversation"
SUMMARY: Final = "summary"
MESSAGE: Final = "message#"
PURGE: Final = "purge#"
LAST_NUMBER: Final = 999_999_999_999


def conversation(tenant_id: str, conversation_id: str) -> str:
    """The partition of a conversation's header."""
    return f"{tenant_id}#conversation#{conversation_id}"


def conversations(tenant_id: str) -> str:
    """The partition that lists a tenant's conversations."""
    return f"{tenant_id}#conversations"


def messages(tenant_id: str, generation: str) -> str:
    """The partition of a generation's messages and summary."""
    return f"{tenant_id}#messages#{generation}"


def purges(tenant_id: str) -> str:
    """The partition of a tenant's generations that are over."""
    return f"{tenant_id}#purge"


def message(number: int) -> str:
    """The sort key of a message."""
    return f"{MESSAGE}{number:012d}"


def number(sk: str) -> int:
    """The number of the message under a sort key."""
    return int(sk.removeprefix(MESSAGE))
