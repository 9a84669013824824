"""Where collections, their documents, projects, queries and jobs lie in the table; every key starts from the tenant.

    pk                              sk                      item
    {tenant}#collections            {name}                  a collection: its id, and how its passages are embedded
    {tenant}#documents#{collection} {path}                  a document: its hash, revision and size, or that it is gone
    {tenant}#texts#{collection}     {path}#{text}#{part}    a part of a document's text, compressed
    {tenant}#projects               {name}                  a project: the collections it is linked to
    {tenant}#queries                {time}#{random}         what was asked
    {tenant}#job#{job}              job                     an ingestion: how far it is
    {tenant}#job#{job}              todo#{number}           one document that it is to bring in
    {tenant}#job#{job}              remove#{number}         paths that it is to take out
    {tenant}#work                   ingest#{job}#{run}      that an ingestion is to go on
    {tenant}#work                   index#{collection}#…    that a document waits to be indexed
    {tenant}#work                   purge#{collection}      that a collection is gone: what it held is to be deleted

A collection's id is random and never given again: what a writer that was still under way adds to one that is deleted
lies under keys that nobody reads any more.
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


def collections(tenant_id: str) -> str:
    """The partition of a tenant's collections."""
    return f"{tenant_id}#collections"


def documents(tenant_id: str, collection_id: str) -> str:
    """The partition of a collection's documents."""
    return f"{tenant_id}#documents#{collection_id}"


def texts(tenant_id: str, collection_id: str) -> str:
    """The partition of the texts of a collection's documents."""
    return f"{tenant_id}#texts#{collection_id}"


def text(path: str, text_id: str) -> str:
    """What the sort keys of a text's parts begin with."""
    return f"{path}#{text_id}#"


def projects(tenant_id: str) -> str:
    """The partition of a tenant's projects."""
    return f"{tenant_id}#projects"


def queries(tenant_id: str) -> str:
    """The partition of what a tenant has asked."""
    return f"{tenant_id}#queries"


def job(tenant_id: str, job_id: str) -> str:
    """The partition of an ingestion."""
    return f"{tenant_id}#job#{job_id}"


def todo(number: int) -> str:
    """The sort key of a document that an ingestion is to bring in."""
    return f"{TODO}{number:08d}"


def remove(number: int) -> str:
    """The sort key of some of the paths that an ingestion is to take out."""
    return f"{REMOVE}{number:08d}"


def work(tenant_id: str) -> str:
    """The partition of what the stream brings to workers."""
    return f"{tenant_id}#work"


def awaiting_index(collection_id: str, path: str) -> str:
    """The sort key that says that a document waits to be indexed."""
    return f"{INDEX}{collection_id}#{hashlib.sha256(path.encode()).hexdigest()}"
