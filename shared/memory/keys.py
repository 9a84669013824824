"""Keys of the memory table. Every partition key starts with the tenant.

    pk                             sk                    item
    {tenant}#conversation#{id}     conversation          the header: generation, and number of the last message
    {tenant}#conversations         {id}                  an entry in the list of the tenant's conversations
    {tenant}#messages#{generation} message#000000000001  one message, or who deleted it and when
    {tenant}#messages#{generation} summary               the summary
    {tenant}#purge                 purge#{generation}    a past generation, whose items are to be deleted
    {tenant}#expiry                expiry#{generation}#{id}    when the purge of an expired conversation is due
    {tenant}#subject#{hash}        subject               the key of a subject, by the hash of its name
    {tenant}#subject_list#{key}    {id}                  an entry in the list of a subject's conversations
    {tenant}#subject_list#{key}    \\x1f{generation}      a generation of an expired one that another has replaced
    {tenant}#unindexed#{shard}     {at}#{generation}#{number}  a message that may not be indexed yet
    {tenant}#fields                fields#{generation}#{id}    a conversation whose fields are to be set in the index
    {tenant}#erasure               erasure#{hash}#{key}  conversations of an erased subject, which are to be deleted

A generation is the time between two clearings. Clearing starts a new one: from then on no item of the old one is
visible, however many there are, including those that concurrent writers still add.

A subject's key is replaced when the subject is erased: from then on no conversation with the old key is visible.
"""

import hashlib
from typing import Final

from shared.aws.dynamodb import Keys

HEADER: Final = "conversation"
SUMMARY: Final = "summary"
MESSAGE: Final = "message#"
PURGE: Final = "purge#"
EXPIRY: Final = "expiry#"
ERASURE: Final = "erasure#"
FIELDS: Final = "fields#"
UNINDEXED_SHARDS: Final = 4
"""A shard takes a thousand messages a second."""
SUBJECT: Final = "subject"
FORMER: Final = "\x1f"
"""A character that no id of a conversation has, before all that ids begin with."""
SUBJECT_LIST: Final = Keys.after("\x01")
"""Everything in the list of a subject's conversations."""
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


def expiries(tenant_id: str) -> str:
    """Return the partition key of a tenant's conversations that expire."""
    return f"{tenant_id}#expiry"


def expiry(generation: str, conversation_id: str) -> str:
    """Return the sort key of the purge of an expiring conversation."""
    return f"{EXPIRY}{generation}#{conversation_id}"


def subject_hash(subject: str) -> str:
    """Return the hash that stands for a subject: nothing that is kept after its erasure has its name."""
    return hashlib.sha256(subject.encode("utf-8")).hexdigest()[:32]


def indexed_subject(subject: str) -> str:
    """Return what the index has of a subject: files of the index may keep it for a time after an erasure."""
    return subject_hash(subject) if subject else ""


def subject(tenant_id: str, subject_hash: str) -> str:
    """Return the partition key of a subject."""
    return f"{tenant_id}#subject#{subject_hash}"


def subject_list(tenant_id: str, subject_key: str) -> str:
    """Return the partition key of the list of a subject's conversations."""
    return f"{tenant_id}#subject_list#{subject_key}"


def former(generation: str) -> str:
    """Return the sort key of a replaced generation in the list of its subject's conversations."""
    return f"{FORMER}{generation}"


def erasures(tenant_id: str) -> str:
    """Return the partition key of a tenant's erasures that are not finished."""
    return f"{tenant_id}#erasure"


def erasure(subject_hash: str, subject_key: str) -> str:
    """Return the sort key of the erasure of a subject's conversations."""
    return f"{ERASURE}{subject_hash}#{subject_key}"


def unindexed(tenant_id: str, shard: int) -> str:
    """Return the partition key of a shard of the messages that may not be indexed yet."""
    return f"{tenant_id}#unindexed#{shard}"


def shard_of(generation: str) -> int:
    """Return the shard of a generation's messages."""
    return int(generation[:8], 16) % UNINDEXED_SHARDS


def unindexed_message(at: str, generation: str, number: int) -> str:
    """Return the sort key of a message that may not be indexed yet. They are in the order of time."""
    return f"{at}#{generation}#{number:012d}"


def fields(tenant_id: str) -> str:
    """Return the partition key of a tenant's conversations whose fields are to be set in the index."""
    return f"{tenant_id}#fields"


def fields_of(generation: str, conversation_id: str) -> str:
    """Return the sort key of a conversation whose fields are to be set in the index."""
    return f"{FIELDS}{generation}#{conversation_id}"


def message(number: int) -> str:
    """Return the sort key of a message."""
    return f"{MESSAGE}{number:012d}"


def number(sk: str) -> int:
    """Return the number of the message with a sort key."""
    return int(sk.removeprefix(MESSAGE))
