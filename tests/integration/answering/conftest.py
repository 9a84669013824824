"""Questions on the real store and index, with a model on loopback."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from shared.documents.index import refresh_document
from tests.helpers.answer_library import DOCUMENTS, Ask, write_document
from tests.helpers.document_agent import DocumentAgent
from tests.helpers.model_server import reply_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.model_server import ModelServer


@pytest.fixture(scope="module", autouse=True)
def _empty_table() -> None:
    """Keep the documents that the modules of this package share."""


@pytest.fixture(autouse=True)
def indexing() -> None:
    """Index documents as they are written."""


@pytest.fixture(scope="package")
def shelf(store: str, _limits: None) -> DocumentAgent:
    """Return a tenant with DOCUMENTS, which no test changes."""
    agent = DocumentAgent(f"tenant-{uuid4().hex}")
    for document_id, (body, tags) in DOCUMENTS.items():
        write_document(agent, document_id, body, tags)
        refresh_document(agent.tenant, document_id)
    return agent


@pytest.fixture
def library(agent: DocumentAgent) -> DocumentAgent:
    """Return the test's own tenant with DOCUMENTS."""
    for document_id, (body, tags) in DOCUMENTS.items():
        write_document(agent, document_id, body, tags)
    return agent


@pytest.fixture
def ask(shelf: DocumentAgent) -> Ask:
    """Return a caller that queries that tenant's documents."""
    return partial(shelf, "query_knowledge")


@pytest.fixture(params=["openai", "bedrock"])
def answering(request: pytest.FixtureRequest, settings: Callable[..., None], model: ModelServer) -> str:
    """Configure a model that answers with a citation, and return its provider."""
    settings(KHO_MODEL_PROVIDER=request.param)
    model.behave = reply_with("Chạy **pf init** [1].")
    return str(request.param)


@pytest.fixture
def with_model(settings: Callable[..., None], model: ModelServer) -> ModelServer:
    """Configure a model that answers with a citation, and return it."""
    model.behave = reply_with("Chạy **pf init** [1].")
    return model
