"""Files that are sent as they are: texts in other encodings, PDFs, and kinds without text."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from shared.knowledge import pdf
from shared.knowledge.models import MAX_UPLOAD_BYTES
from shared.rpc.caller import ROLES, Caller
from shared.rpc.errors import InvalidParams, TooLarge
from tests.helpers.pdf import make_pdf, text_stream
from tests.helpers.research_client import call_research_agent
from workers import ingest

if TYPE_CHECKING:
    from shared.knowledge.models import Collection

PDF = make_pdf(text_stream(b"Orchids like a dry spell."), text_stream(b"Moss likes rain."), compressed=True)


@pytest.fixture
def caller(tenant: str, collection: Collection) -> Caller:
    """Return a caller with the collection `notes`."""
    return Caller("tester", frozenset(ROLES), tenant)


def send(caller: Caller, files: dict[str, bytes], **more: Any) -> Any:
    documents = [
        {"path": path, "content_base64": base64.b64encode(content).decode()} | more for path, content in files.items()
    ]
    return call_research_agent(caller, "ingest_documents", collection="notes", documents=documents)


def finish(caller: Caller, accepted: dict[str, Any]) -> Any:
    """Run the job by a worker, and return its outcome."""
    keys = {"pk": {"S": f"{caller.tenant_id}#work"}, "sk": {"S": f"ingest#{accepted['job_id']}#1"}}
    record = {"eventID": "1", "eventName": "INSERT", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}
    assert ingest.handler({"Records": [record], "eventSource": "aws:dynamodb"}, None) == {"batchItemFailures": []}
    return call_research_agent(caller, "get_ingestion", job_id=accepted["job_id"])


def find(caller: Caller, query: str) -> dict[str, Any]:
    first: dict[str, Any] = call_research_agent(caller, "query_knowledge_base", query=query, collections="notes")[
        "results"
    ][0]
    return first


def test_pdf_is_read_by_a_worker_and_found(caller: Caller) -> None:
    """An uploaded PDF becomes a job, whose outcome counts every file of the request; its pages are found."""
    files = {
        "orchids.pdf": PDF,
        "broken.pdf": b"%PDF-1.4 and then nothing",
        "兰花.txt": "兰花每十天浇一次水。".encode("gb18030"),
        "leaf.jpg": b"\xff\xd8\xff\0",
        "core": b"\x7fELF\0",
        "bad.md": b"\0",
    }
    accepted = send(caller, files)
    assert accepted["status"] == "accepted"
    job = finish(caller, accepted)
    assert (job["status"], job["total"], job["processed"], job["added"]) == ("done", 6, 6, 2)
    assert {each["path"]: each["reason"] for each in job["failed"]} == {
        "broken.pdf": "is not a PDF that can be read",
        "bad.md": "is not text",
    }
    assert job["skipped"] == {"pictures": 1, "other binary files": 1}
    assert job["notes"] == [{"path": "兰花.txt", "note": "read as GB18030"}]
    result = find(caller, "what do orchids like?")
    assert (result["source_document"], result["header_path"]) == ("orchids.pdf", "Page 1")
    assert find(caller, "兰花多久浇水")["source_document"] == "兰花.txt"


def test_pdf_that_has_not_changed_is_not_read_again(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(caller, send(caller, {"orchids.pdf": PDF}))
    monkeypatch.setattr(pdf, "text_of", None)
    again = send(caller, {"orchids.pdf": PDF})
    assert (again["status"], again["unchanged"], again["chunks"]) == ("success", 1, 2)


def test_small_texts_are_read_within_the_request(caller: Caller) -> None:
    result = send(caller, {"été.txt": "L'été sera chaud.".encode("cp1252"), "a.md": "Été".encode(), "x.zip": b"PK"})
    assert (result["status"], result["added"], result["skipped"]) == ("success", 2, {"archives": 1})
    assert result["notes"] == [{"path": "été.txt", "note": "read as Windows-1252"}]


@pytest.mark.parametrize(("name", "content"), [("a.md", b"\0"), ("a", b"\0")])
def test_file_that_holds_no_text_any_more_loses_its_document(caller: Caller, name: str, content: bytes) -> None:
    send(caller, {name: b"Roses like sun."})
    assert send(caller, {name: content})["removed"] == 1
    assert call_research_agent(caller, "list_documents", collection_name="notes")["documents"] == []


def test_file_of_more_than_the_limit_is_refused(caller: Caller) -> None:
    assert MAX_UPLOAD_BYTES == 4 * 1024 * 1024
    with pytest.raises(TooLarge, match=r"a\.pdf is larger than 4,194,304 bytes"):
        send(caller, {"a.pdf": bytes(MAX_UPLOAD_BYTES + 1)})


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "documents.1.content"),
        ({"content": "a", "content_base64": "YQ=="}, "documents.1.content"),
        ({"content_base64": "Y"}, "documents.1.content_base64"),
        ({"content_base64": "é"}, "documents.1.content_base64"),
    ],
)
def test_document_is_a_text_or_a_file(caller: Caller, document: dict[str, str], field: str) -> None:
    documents = [{"path": "good.md", "content": "a"}, {"path": "a.md"} | document]
    with pytest.raises(InvalidParams) as refused:
        call_research_agent(caller, "ingest_documents", collection="notes", documents=documents)
    assert [each["field"] for each in refused.value.details] == [field]
    assert call_research_agent(caller, "list_documents", collection_name="notes")["documents"] == []
