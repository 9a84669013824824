"""Keys of the documents table. Every partition key starts with the tenant.

    pk                           sk                    item
    {tenant}#document#{id}       document              the current document, without its body
    {tenant}#document#{id}       position              its position in the tree, and what moves and deletions check
    {tenant}#document#{id}       content#000000000012  its content, metadata and flag as of revision 12
    {tenant}#document#{id}       history#000000000012  the audit entry of revision 12: who, when, how and why
    {tenant}#document#{id}       deletion              a scheduled deletion; expires when it is due
    {tenant}#children#{parent}   {order key}#{id}      a child, in the order of siblings
    {tenant}#bin                 {delete_at}#{id}      a document that is deleted, or will be, in the order of the times
    {tenant}#words#{character}   {word}#{id}           a word of a document's title or id, in the partition of its first
                                                       character; the empty word is of a document with very many
    {tenant}#body#{sha256}       part#000              one part of a body that is too large for one item
    {tenant}#request#{request}   request               the idempotency record of a request_id, with its result

A write is one transaction over the first four, the child, the bin, the words and the request. The parts of a large body
are written before it, under their digest: a repeated write overwrites the parts of a failed one with the same data.
"""

from typing import Final

ROOT: Final = "root"
DOCUMENT: Final = "document"
POSITION: Final = "position"
REQUEST: Final = "request"
DELETION: Final = "deletion"
CONTENT: Final = "content#"
HISTORY: Final = "history#"
PART: Final = "part#"
PART_DIGITS: Final = 3
_TIME_DIGITS: Final = 20


def document(tenant_id: str, document_id: str) -> str:
    """Return the partition key of a document."""
    return f"{tenant_id}#document#{document_id}"


def document_of(partition: str) -> tuple[str, str]:
    """Return the tenant and the document id in a document's partition key."""
    tenant_id, _, document_id = partition.partition("#document#")
    return tenant_id, document_id


def children(tenant_id: str, parent_id: str) -> str:
    """Return the partition key of the list of a document's children."""
    return f"{tenant_id}#children#{parent_id}"


def deleted_documents(tenant_id: str) -> str:
    """Return the partition key of the list of deleted documents."""
    return f"{tenant_id}#bin"


def deleted_document(delete_at: int, document_id: str) -> str:
    """Return the sort key of a deleted document."""
    return f"{delete_at:0{_TIME_DIGITS}d}#{document_id}"


def words(tenant_id: str, word: str) -> str:
    """Return the partition key of the words that begin with the same character as `word`."""
    return f"{tenant_id}#words#{word[:1]}"


def word(text: str, document_id: str) -> str:
    """Return the sort key of a document's word. '#' sorts before every character of a word."""
    return f"{text}#{document_id}"


def body(tenant_id: str, digest: str) -> tuple[str, str]:
    """Return the partition of a large body's parts, and the prefix of their sort keys."""
    return f"{tenant_id}#body#{digest}", PART


def request(tenant_id: str, request_id: str) -> str:
    """Return the partition key of a request id's idempotency record."""
    return f"{tenant_id}#request#{request_id}"


def content(revision: int) -> str:
    """Return the sort key of the content as of a revision."""
    return f"{CONTENT}{revision:012d}"


def history(revision: int) -> str:
    """Return the sort key of a revision's audit entry."""
    return f"{HISTORY}{revision:012d}"


def child(order_key: str, document_id: str) -> str:
    """Return the sort key of a child. '#' sorts before every digit of an order key; ids break ties."""
    return f"{order_key}#{document_id}"
