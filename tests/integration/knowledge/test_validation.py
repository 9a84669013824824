"""Requests that the research agent's methods reject instead of guessing their meaning."""

from __future__ import annotations

import importlib
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

from infra.clients.agent.backend import BackendError
from infra.clients.cli import serve
from shared.aws.dynamodb import Table
from shared.knowledge.collections import CollectionStore
from shared.knowledge.projects import ProjectStore
from shared.knowledge.recorded_space import recorded_space
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.caller import ROLES, Caller
from shared.rpc.errors import KhoError
from tests.helpers.pdf import make_pdf, text_stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Asking = Callable[..., Any]


@pytest.fixture
def ask(tenant: str) -> Asking:
    """Return a caller of methods: the result, or the error's code."""
    caller = Caller("tester", frozenset(ROLES), tenant)

    def asked(method: str, **params: Any) -> Any:
        handler = importlib.import_module(f"research_agent.{method}").handler
        call = {"method": method, "params": params, "caller": caller.record(), "correlation_id": "refusals"}
        answer = handler(call, None)
        return answer["error"]["code"] if "error" in answer else answer["result"]

    asked("manage_collections", action="create", collection_name="notes")
    return asked


def test_unlinked_project_does_not_search_everything(ask: Asking) -> None:
    ask("augment_knowledge", content="The key lies under the mat.", source="secret", collection="notes")
    ask("manage_projects", action="create", project_name="garden")
    query = {"query": "where is the key?", "project_name": "garden"}
    assert ask("query_knowledge_base", **query) == "CONFIGURATION_NOTHING_LINKED"
    ask("manage_collections", action="create", collection_name="plants")
    ask("manage_projects", action="link", project_name="garden", collections="plants")
    ask("manage_projects", action="set-defaults", project_name="garden", collections="plants")
    assert ask("query_knowledge_base", **query)["results"] == []
    ask("manage_collections", action="delete", collection_name="plants")
    assert ask("query_knowledge_base", **query) == "CONFIGURATION_NOTHING_LINKED"


def test_project_without_defaults_searches_its_linked_collections(ask: Asking) -> None:
    ask("manage_projects", action="create", project_name="garden", collections="notes")
    done = ask("manage_projects", action="set-defaults", project_name="garden")
    assert done["message"] == "The project 'garden' searches everything that it is linked to by default."


@pytest.mark.parametrize(
    "more", [{"documents": [{"path": "b.md", "content": "x"}]}, {"remove": ["g.md"]}, {"tree": "t"}], ids=str
)
def test_path_excludes_other_sources(ask: Asking, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "file_source", object())
    assert ask("ingest_documents", path="a.md", collection="notes", **more) == "DOCUMENT_PARAMETER_AMBIGUOUS"


def test_unstorable_text_is_rejected(ask: Asking) -> None:
    answer = ask("augment_knowledge", content="x", source="é" * 451, collection="notes")
    assert answer == "DOCUMENT_UNREADABLE"


def test_too_long_path_is_not_found(ask: Asking) -> None:
    documents = [{"path": "é" * 900, "content": "x" * 30_000}]
    done = ask("ingest_documents", collection="notes", documents=documents, remove=["é" * 900])
    assert done["status"] == "accepted"
    done = ask("ingest_documents", collection="notes", remove=["é" * 900])
    assert (done["status"], done["removed"]) == ("success", 0)


@pytest.mark.usefixtures("ask")
def test_slow_pdf_is_a_failed_document(tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.pdf").write_bytes(make_pdf(text_stream(b"No PDF is read in no time.")))
    monkeypatch.setattr(runtime, "file_source", None)
    serve._allow_reading([tmp_path], pdf_seconds=0)
    handler = importlib.import_module("research_agent.ingest_documents").handler
    caller = Caller("tester", frozenset(ROLES), tenant)
    params = {"path": str(tmp_path / "slow.pdf"), "collection": "notes"}
    call = {"method": "ingest_documents", "params": params, "caller": caller.record(), "correlation_id": "slow-pdf"}
    refused = BackendError.from_kho_error(KhoError.from_record(handler(call, None)["error"]))
    assert (refused.code, refused.data["code"]) == (-32003, "DOCUMENT_UNREADABLE")
    assert refused.message == "slow.pdf takes longer than 0 s to unpack"


@pytest.mark.parametrize(
    ("method", "field"), [("manage_collections", "collection_name"), ("manage_projects", "project_name")]
)
def test_new_names_can_be_told_apart(ask: Asking, method: str, field: str) -> None:
    for name in ("no\u200btes", "\u202enotes", "n\u043etes"):
        assert ask(method, action="create", **{field: name}) == "INVALID_PARAMS"
    assert ask(method, action="create", **{field: "Tài_liệu-👩🏽\u200d💻"})["status"] == "success"


def test_a_letter_written_in_two_ways_is_one_name(ask: Asking, tenant: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, "ghi-chú") for form in ("NFC", "NFD"))
    created = ask("manage_collections", action="create", collection_name=decomposed)["collection"]
    assert created["name"] == composed
    assert ask("manage_collections", action="create", collection_name=composed) == "COLLECTION_EXISTS"
    ask("manage_projects", action="create", project_name=decomposed, collections=decomposed)
    assert ask("manage_projects", action="info", project_name=composed)["project"]["collections"] == [composed]
    ask("augment_knowledge", content="The key lies under the mat.", source="secret", collection=decomposed)
    assert ask("query_knowledge_base", query="where is the key?", collections=decomposed)["results"]


def test_name_that_was_stored_decomposed_is_found_and_deleted(ask: Asking, tenant: str) -> None:
    decomposed = unicodedata.normalize("NFD", "ghi-chú")
    table = Table(config().knowledge_table)
    CollectionStore(table, tenant).create(decomposed, "fundamental", recorded_space())
    ProjectStore(table, tenant).create(decomposed, [decomposed])
    assert ask("manage_projects", action="info", project_name="ghi-chú")["status"] == "success"
    assert ask("manage_collections", action="delete", collection_name="ghi-chú")["status"] == "success"
    assert ask("manage_collections", action="info", collection_name=decomposed) == "COLLECTION_NOT_FOUND"
