"""agent-data/edit_document: change parts of a document, or bring an earlier revision of it back."""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from agent_data.stores import unit_of_work
from agent_data.writes import DocumentWriteParams
from api.deployment import EMBEDDING_INDEX, SPLITTING, lambda_function, table
from api.handler import method
from shared.documents import revisions
from shared.documents.edits import Edit, Replacement, SectionEdit
from shared.documents.immediate_indexing import index_immediately
from shared.documents.models import WriteResult
from shared.documents.occurrences import MOST_OCCURRENCES
from shared.rpc.caller import Caller
from shared.rpc.errors import Conflict, NotFound, TooLarge
from shared.rpc.mcp_catalog import McpTool
from shared.rpc.method import WHOLE, OpenObject, Params

Text = Annotated[str, Field(min_length=1)]
"""Its size is limited by that of the request, and by that of the document after the edit."""


class ReplaceParams(Params):
    """A text that occurs `count` times, and another for each place."""

    old: Text
    new: str
    count: Annotated[int, Field(ge=1, le=MOST_OCCURRENCES), WHOLE] = 1


class SectionParams(Params):
    """The new text of a section."""

    heading: Annotated[list[str], Field(min_length=1)]
    body: str


def _one_without_null(schema: dict[str, Any]) -> None:
    for name, each in schema["properties"].items():
        schema["properties"][name] = each["anyOf"][0]
    schema |= {"minProperties": 1, "maxProperties": 1}


class EditParams(Params):
    """Exactly one of these."""

    model_config = ConfigDict(json_schema_extra=_one_without_null)

    append: Text | None = None
    prepend: Text | None = None
    replace: ReplaceParams | None = None
    section: SectionParams | None = None
    metadata: Annotated[OpenObject, Field(min_length=1)] | None = None
    restore_revision: Annotated[int, Field(ge=1, le=999_999_999_999), WHOLE] | None = None

    @model_validator(mode="after")
    def _one(self) -> "EditParams":
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError(f"should have exactly one of {', '.join(type(self).model_fields)}")
        return self

    def edit(self) -> Edit:
        """Return the edit."""
        replace, section = self.replace, self.section
        return Edit(
            append=self.append,
            prepend=self.prepend,
            replace=Replacement(replace.old, replace.new, replace.count) if replace else None,
            section=SectionEdit(tuple(section.heading), section.body) if section else None,
            metadata=self.metadata,
            restore_revision=self.restore_revision,
        )


_RESTORED_ALONE: Final[JsonDict] = {"not": {"minItems": 2, "contains": {"required": ["restore_revision"]}}}


def _restored_alone(edits: list[EditParams]) -> list[EditParams]:
    if len(edits) > 1 and any(each.restore_revision is not None for each in edits):
        raise ValueError("should have restore_revision alone, without another edit")
    return edits


class EditDocument(DocumentWriteParams):
    """The document, and its edits in order. All of them apply, or none."""

    edits: Annotated[
        list[EditParams],
        Field(min_length=1, max_length=50, json_schema_extra=_RESTORED_ALONE),
        AfterValidator(_restored_alone),
    ]
    last_known_revision: Annotated[int, Field(ge=1, le=2**53), WHOLE] | None = None


@lambda_function(
    table("Documents", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"), EMBEDDING_INDEX, SPLITTING
)
@method(
    "agent-data/edit_document",
    role="writer",
    errors=(NotFound, Conflict, TooLarge),
    example={
        "document_id": "guide",
        "edits": [{"replace": {"old": "shade", "new": "shade and mist"}}, {"metadata": {"status": "checked"}}],
    },
    tool=McpTool(
        "Edit a document",
        "edits",
        "Change parts of a document, all in order or none. append and prepend add text exactly as given. replace "
        "needs 'old' to occur 'count' times. section replaces the text below a heading. restore_revision, alone, "
        "undoes. NO_SINGLE_MATCH lists the candidates' lines.",
    ),
)
def handler(params: EditDocument, caller: Caller) -> WriteResult:
    """Apply the edits to the document as it is now. Concurrent writers lose nothing."""
    work = unit_of_work(caller)
    request = params.write_request("edit_document", caller)
    edits = [each.edit() for each in params.edits]
    result = revisions.edit(work, request, params.document_id, edits, params.last_known_revision)
    index_immediately(work)
    return result
