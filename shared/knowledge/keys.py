"""Partition and sort keys of the knowledge table. Every partition key starts with the tenant.

    pk                              sk                      item
    {tenant}#collections            {name}                  a collection: its id and embedding space
    {tenant}#documents#{collection} {path}                  a document: its hash, revision and size, or a tombstone
    {tenant}#texts#{collection}     {path}#{text}#{part}    a part of a document's compressed text
    {tenant}#projects               {name}                  a project and its linked collections
    {tenant}#queries                {time}#{random}         an entry of the query history
    {tenant}#job#{job}              job                     an ingestion job and its progress
    {tenant}#job#{job}              todo#{number}           one document that the job ingests
    {tenant}#job#{job}              remove#{number}         paths that the job removes
    {tenant}#work                   ingest#{job}#{run}      work item: start or resume an ingestion job
    {tenant}#work                   index#{collection}#…    work item: index a document
    {tenant}#work                   purge#{collection}      work item: delete what a deleted collection held

A collection's id is random and never reused. A late writer to a deleted collection writes under keys that are never
read again.
"""

import hashlib
from typing import Final, Literal

JOB: Final = "job"
PENDING: Final[Literal["todo#"]] = "todo#"
REMOVE: Final[Literal["remove#"]] = "remove#"
INGEST: Final = "ingest#"
INDEX: Final = "index#"
PURGE: Final = "purge#"
PART_DIGITS: Final = 4


def partition(
    tenant_id: str,
    kind: Literal["collections", "documents", "texts", "projects", "queries", "job", "work"],
    *id_: str,
) -> str:
    """Return the partition key of what a tenant has of a kind: all of it, or that of one collection or job."""
    return "#".join((tenant_id, kind, *id_))


def text(tenant_id: str, collection_id: str, path: str, text_id: str) -> tuple[str, str]:
    """Return the partition of a text's parts, and the prefix of their sort keys."""
    return partition(tenant_id, "texts", collection_id), f"{path}#{text_id}#"


def job_input(kind: Literal["todo#", "remove#"], number: int) -> str:
    """Return the sort key of one part of a job's input."""
    return f"{kind}{number:08d}"


def awaiting_index(collection_id: str, path: str) -> str:
    """Return the sort key of the work item for a document that waits to be indexed."""
    return f"{INDEX}{collection_id}#{hashlib.sha256(path.encode()).hexdigest()}"
