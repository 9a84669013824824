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

from __future__ import annotations

import hashlib
from typing import Final

JOB: Final = "job"
TODO: Final = "todo#"
REMOVE: Final = "remove#"
INGEST: Final = "ingest#"
INDEX: Final = "index#"
PURGE: Final = "purge#"
PART_DIGITS: Final = 4


def collections(tenant_id: str) -> str:
    """Return the partition of a tenant's collections."""
    return f"{tenant_id}#collections"


def documents(tenant_id: str, collection_id: str) -> str:
    """Return the partition of a collection's documents."""
    return f"{tenant_id}#documents#{collection_id}"


def texts(tenant_id: str, collection_id: str) -> str:
    """Return the partition of the texts of a collection's documents."""
    return f"{tenant_id}#texts#{collection_id}"


def text(tenant_id: str, collection_id: str, path: str, text_id: str) -> tuple[str, str]:
    """Return the partition of a text's parts, and the prefix of their sort keys."""
    return texts(tenant_id, collection_id), f"{path}#{text_id}#"


def projects(tenant_id: str) -> str:
    """Return the partition of a tenant's projects."""
    return f"{tenant_id}#projects"


def queries(tenant_id: str) -> str:
    """Return the partition of a tenant's query history."""
    return f"{tenant_id}#queries"


def job(tenant_id: str, job_id: str) -> str:
    """Return the partition of an ingestion job."""
    return f"{tenant_id}#job#{job_id}"


def todo(number: int) -> str:
    """Return the sort key of a document that a job ingests."""
    return f"{TODO}{number:08d}"


def remove(number: int) -> str:
    """Return the sort key of a chunk of the paths that a job removes."""
    return f"{REMOVE}{number:08d}"


def work(tenant_id: str) -> str:
    """Return the partition of the work items that the stream delivers to workers."""
    return f"{tenant_id}#work"


def awaiting_index(collection_id: str, path: str) -> str:
    """Return the sort key of the work item for a document that waits to be indexed."""
    return f"{INDEX}{collection_id}#{hashlib.sha256(path.encode()).hexdigest()}"
