"""Error templates of collections, documents, projects and queries.

The first word of a code is its category, which maps to a JSON-RPC error number: COLLECTION_, DOCUMENT_, QUERY_,
CONFIGURATION_.
"""

from shared.rpc.error_template import ErrorTemplate
from shared.rpc.errors import Conflict, InvalidRequest, NotFound, TooLarge, Unavailable

no_collection = ErrorTemplate(
    NotFound,
    "COLLECTION_NOT_FOUND",
    "Collection not found: {collection}",
    "manage_collections with action 'list' shows those that exist; action 'create' makes one.",
)
nothing_to_search = ErrorTemplate(
    NotFound,
    "COLLECTION_NOT_FOUND",
    "There are no collections to search yet.",
    "Make one with manage_collections (action 'create'), and fill it with ingest_documents.",
)
collection_exists = ErrorTemplate(
    Conflict,
    "COLLECTION_EXISTS",
    "Collection already exists: {collection}",
    "Use the existing one or another name; manage_collections with action 'info' shows its contents.",
)
collection_incomplete = ErrorTemplate(
    InvalidRequest,
    "COLLECTION_PARAMETER_MISSING",
    "The action '{action}' needs '{missing}'.",
    "Call again with it; nothing was changed.",
    problem=("{missing}", "is required"),
)

no_document = ErrorTemplate(
    NotFound,
    "DOCUMENT_NOT_FOUND",
    "Document not found: {path} {reason}",
    "Check the path; it must lie under the allowed roots, which --root (KHO_ROOT) names.",
)
not_in_collection = ErrorTemplate(
    NotFound,
    "DOCUMENT_NOT_FOUND",
    "The collection '{collection}' has no document: {path}",
    "list_documents ('research-agent kb list') shows the documents of a collection.",
)
path_forbidden = ErrorTemplate(
    InvalidRequest,
    "DOCUMENT_PATH_FORBIDDEN",
    "This path leads outside the allowed roots: {path}",
    "Give a path under the allowed roots, or allow its folder with --root (KHO_ROOT).",
)
unreadable = ErrorTemplate(
    InvalidRequest,
    "DOCUMENT_UNREADABLE",
    "{path} {reason}",
    "Markdown, plain text, HTML, source code and PDF with text can be read.",
)
document_too_large = ErrorTemplate(
    TooLarge,
    "DOCUMENT_TOO_LARGE",
    "{path} is larger than {limit_bytes:,} bytes.",
    "Send it in parts.",
)
document_missing = ErrorTemplate(
    InvalidRequest,
    "DOCUMENT_PARAMETER_MISSING",
    "There is nothing to ingest: give 'path' or 'documents'.",
    "Send 'documents': [{'path', 'content'}], or a 'path' where the server may read this machine's files.",
    problem=("documents", "is required where there is no path"),
)
document_ambiguous = ErrorTemplate(
    InvalidRequest,
    "DOCUMENT_PARAMETER_AMBIGUOUS",
    "Give either 'path' or what is sent: 'documents', 'remove' and 'tree'.",
    "Call once for each; nothing was changed.",
    problem=("path", "excludes the other parameters"),
)
no_job = ErrorTemplate(
    NotFound,
    "DOCUMENT_JOB_NOT_FOUND",
    "Ingestion not found: {job_id}",
    "Use the job_id that ingest_documents returned; jobs are kept for 7 days after their end.",
)

query_invalid = ErrorTemplate(
    InvalidRequest,
    "QUERY_INVALID",
    "Invalid query: it {reason}.",
    "Ask in a few words or a sentence, of at most 2,048 characters.",
    problem=("query", "{reason}"),
)
not_searchable = ErrorTemplate(
    Unavailable,
    "QUERY_INDEX_UNAVAILABLE",
    "The knowledge base cannot be searched at the moment.",
    "Try again in a moment. Nothing is lost: documents written in the meantime are indexed later.",
)

file_reading_disabled = ErrorTemplate(
    InvalidRequest,
    "CONFIGURATION_NO_ROOTS",
    "This server reads no files: it cannot see the caller's disk.",
    "Send 'documents': [{'path', 'content'}], or use research-agent, which reads files and sends them.",
    problem=("path", "can be read only by 'kho serve' on a loopback address, under its roots"),
)
other_embedding = ErrorTemplate(
    Conflict,
    "CONFIGURATION_EMBEDDING_MISMATCH",
    "The collection '{collection}' was embedded with {recorded}; the current setting is {current}.",
    "Change the model back, or run 'kho reindex' to embed everything with the current one.",
)
no_project = ErrorTemplate(
    NotFound,
    "CONFIGURATION_NO_PROJECT",
    "Project not found: {project_name}",
    "manage_projects with action 'list' shows those that exist; action 'create' makes one.",
)
project_exists = ErrorTemplate(
    Conflict,
    "CONFIGURATION_PROJECT_EXISTS",
    "Project already exists: {project_name}",
    "Use the existing one or another name; manage_projects with action 'info' shows its links.",
)
project_incomplete = ErrorTemplate(
    InvalidRequest,
    "CONFIGURATION_PARAMETER_MISSING",
    "The action '{action}' needs '{missing}'.",
    "Call again with it; nothing was changed.",
    problem=("{missing}", "is required"),
)
nothing_linked = ErrorTemplate(
    Conflict,
    "CONFIGURATION_NOTHING_LINKED",
    "The project '{project_name}' is linked to no collection, so there is nothing to search in it.",
    "Link some with manage_projects (action 'link'), or name 'collections'.",
)
not_linked = ErrorTemplate(
    Conflict,
    "CONFIGURATION_NOT_LINKED",
    "The project '{project_name}' is not linked to: {collections}",
    "Link them first: manage_projects with action 'link'.",
)
