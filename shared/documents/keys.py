"""Where each part of a document lies in the table; every key starts from the tenant.

    pk                           sk                    item
    {tenant}#document#{id}       document              the document as it is now, without its body
    {tenant}#document#{id}       position              where it stands, and what moves and deletions check
    {tenant}#document#{id}       content#000000000012  what revision 12 made of its content, metadata and flag
    {tenant}#document#{id}       history#000000000012  who made revision 12, when, how and why
    {tenant}#document#{id}       deletion              that its deletion is to come: goes when that has come
    {tenant}#children#{parent}   {order key}#{id}      that it is a child, in the order of siblings
    {tenant}#body#{sha256}       part#000              one part of a body that is too large for an item
    {tenant}#request#{request}   {action}              what a request_id was used for, and its answer

A write is one transaction over the first four, the child and the request. The parts of a large body are written before
it, under what they hold: those of a write that was then refused are found there when it is tried again.
"""

from __future__ import annotations

from typing import Final

ROOT: Final = "root"
DOCUMENT: Final = "document"
POSITION: Final = "position"
DELETION: Final = "deletion"
CONTENT: Final = "content#"
HISTORY: Final = "history#"
PART: Final = "part#"


def document(tenant_id: str, document_id: str) -> str:
    """The partition of a document."""
    return f"{tenant_id}#document#{document_id}"


def document_of(partition: str) -> tuple[str, str]:
    """The tenant and the document that a partition is of."""
    tenant_id, _, document_id = partition.partition("#document#")
    return tenant_id, document_id


def children(tenant_id: str, parent_id: str) -> str:
    """The partition that lists a document's children."""
    return f"{tenant_id}#children#{parent_id}"


def body(tenant_id: str, digest: str) -> str:
    """The partition of a large body's parts."""
    return f"{tenant_id}#body#{digest}"


def request(tenant_id: str, request_id: str) -> str:
    """The partition of a request's answers, one an action."""
    return f"{tenant_id}#request#{request_id}"


def content(revision: int) -> str:
    """The sort key of what a revision made of the content."""
    return f"{CONTENT}{revision:012d}"


def history(revision: int) -> str:
    """The sort key of a revision's entry in the audit log."""
    return f"{HISTORY}{revision:012d}"


def part(number: int) -> str:
    """The sort key of a part of a large body."""
    return f"{PART}{number:03d}"


def child(order_key: str, document_id: str) -> str:
    """The sort key of a child: '#' comes before every digit of an order key, and ids decide between equal ones."""
    return f"{order_key}#{document_id}"
