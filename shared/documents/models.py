"""The data types of documents in requests and results."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from shared.documents import keys
from shared.rpc.errors import FieldProblem, InvalidParams
from shared.rpc.field_messages import worded
from shared.rpc.strict_json import fits

MAX_BODY_BYTES: Final = 2 * 1024 * 1024
MAX_METADATA_BYTES: Final = 64 * 1024


def _within_body_bytes(text: str) -> str:
    size = len(text.encode("utf-8"))
    if size > MAX_BODY_BYTES:
        raise ValueError(f"should have at most {MAX_BODY_BYTES} bytes of UTF-8, not {size}")
    return text


def _not_root(document_id: str) -> str:
    if document_id == keys.ROOT:
        raise ValueError("'root' is the top of the tree, not a document")
    return document_id


def require_metadata(metadata: dict[str, Any], field: str) -> None:
    """Raise InvalidParams, naming the field, if a document may not have this metadata."""
    try:
        _metadata(metadata)
    except ValueError as error:
        raise InvalidParams(FieldProblem(field=field, message=f"leads to metadata that {error}")) from None


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    if not fits(metadata, MAX_METADATA_BYTES):
        raise ValueError(f"should have at most {MAX_METADATA_BYTES} bytes as JSON")
    title, tags = metadata.get("title", ""), metadata.get("tags", [])
    if not (isinstance(title, str) and isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        raise ValueError("should have a string as 'title' and a list of strings as 'tags', if it has them")
    return metadata


DocumentId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=worded(r"^[A-Za-z0-9._:-]+$", "letters, digits and . _ - :"),
        examples=["doc-pf-032"],
    ),
]
NewDocumentId = Annotated[DocumentId, AfterValidator(_not_root), Field(json_schema_extra={"not": {"const": keys.ROOT}})]
ParentId = Annotated[DocumentId, Field(examples=["root"])]
MimeType = Literal["text/markdown", "text/plain", "application/json"]
Body = Annotated[str, Field(max_length=MAX_BODY_BYTES), AfterValidator(_within_body_bytes)]
Metadata = Annotated[
    dict[str, Any],
    AfterValidator(_metadata),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"title": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
            "additionalProperties": True,
            "examples": [{"title": "Onboarding", "tags": ["onboarding", "ops"], "source": "cursor"}],
        }
    ),
]
PatchField = Literal["content", "metadata", "is_human_readable"]


@dataclass(frozen=True, slots=True)
class Content:
    """A text and its MIME type."""

    mime_type: MimeType
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDescription:
    """The fields of a document without its content."""

    document_id: str
    parent_id: str
    metadata: dict[str, Any]
    is_human_readable: bool
    revision: int
    created_at: str
    updated_at: str
    delete_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document(DocumentDescription):
    """A document at its current or an earlier revision, with `delete_at` if its deletion is scheduled."""

    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildDocument(DocumentDescription):
    """A document in a list: everything but its body."""

    mime_type: MimeType
    has_children: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedDocument(DocumentDescription):
    """A deleted document: everything but its body, and the title of its parent."""

    mime_type: MimeType
    parent_title: str | None = None


@dataclass(frozen=True, slots=True)
class DeletedDocumentPage:
    """A page of deleted documents, last deleted first, with `next_cursor` if more follow."""

    documents: list[DeletedDocument]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class FoundDocuments:
    """A page of documents by the words that were found, with `next_cursor` if more may follow."""

    documents: list[ChildDocument]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A document above another one."""

    document_id: str
    title: str | None = None


@dataclass(frozen=True, slots=True)
class AncestorList:
    """The documents above another one, from the top down."""

    ancestors: list[Ancestor]


@dataclass(frozen=True, slots=True)
class ChildPage:
    """A page of children in order, with `next_cursor` if more follow."""

    children: list[ChildDocument]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The document after a write. `replayed` is true if an earlier request with the same id made the write."""

    document_id: str
    revision: int
    updated_at: str
    parent_id: str
    deleted: bool | None = None
    delete_at: str | None = None
    request_id: str | None = None
    replayed: bool | None = None
    changes: str | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change; `labels` are self-declared."""

    sub: str
    labels: list[str]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change in the audit log; fields that do not apply are omitted."""

    revision: int
    from_revision: int
    action: str
    at: str
    by: Actor
    correlation_id: str
    request_id: str | None = None
    fields: list[str] | None = None
    changes: str | None = None
    parent_id: str | None = None
    delete_at: str | None = None
    deleted_by: str | None = None
    reason: str | None = None
    together_with: str | None = None


@dataclass(frozen=True, slots=True)
class AuditLogPage:
    """A page of a document's changes, oldest first, with `next_cursor` if more follow."""

    history: list[AuditEntry]
    next_cursor: str | None = None
