"""Questions are asked on the real store and index, with a model on loopback."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from shared.services.document_index import refresh_document
from tests.helpers.answer_library import DOCUMENTS, Ask, write_document
from tests.helpers.document_agent import DocumentAgent
from tests.helpers.model_server import reply_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.model_server import ModelServer


@pytest.fixture(autouse=True)
def indexing() -> None:
    """Documents are indexed as they are written."""


@pytest.fixture(scope="package")
def shelf(store: str, _limits: None) -> DocumentAgent:
    """A tenant who has DOCUMENTS, and whose documents nobody changes."""
    agent = DocumentAgent(f"tenant-{uuid4().hex}")
    for document_id, (body, tags) in DOCUMENTS.items():
        write_document(agent, document_id, body, tags)
        refresh_document(agent.tenant, document_id)
    return agent


@pytest.fixture
def library(agent: DocumentAgent) -> DocumentAgent:
    """A tenant of this test's own who has DOCUMENTS."""
    for document_id, (body, tags) in DOCUMENTS.items():
        write_document(agent, document_id, body, tags)
    return agent


@pytest.fixture
def ask(shelf: DocumentAgent) -> Ask:
    """Asks the documents of that tenant."""
    return partial(shelf, "query_knowledge")


@pytest.fixture(params=["openai", "bedrock"])
def answering(request: pytest.FixtureRequest, settings: Callable[..., None], model: ModelServer) -> str:
    """The provider of a model that answers with a citation."""
    settings(KHO_MODEL_PROVIDER=request.param)
    model.behave = reply_with("Chạy **pf init** [1].")
    return str(request.param)


@pytest.fixture
def with_model(settings: Callable[..., None], model: ModelServer) -> ModelServer:
    """A model that answers with a citation."""
    model.behave = reply_with("Chạy **pf init** [1].")
    return model
