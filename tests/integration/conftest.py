"""Integration tests use the real local store."""

from __future__ import annotations

import math
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from shared.documents import immediate_indexing
from shared.language_model import language_model
from shared.platform.config import config
from shared.platform.telemetry import logger
from shared.rpc import timestamps
from shared.search.index import close_index
from shared.search.message_index import close_message_index
from tests.helpers.document_agent import DocumentAgent
from tests.helpers.dynamodb import running_store
from tests.helpers.dynamodb_requests import intercept_requests
from tests.helpers.function_variables import methods_with_their_variables
from tests.helpers.limits import long_limits
from tests.helpers.model_server import MODEL, ModelServer, model_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="package", autouse=True)
def _limits() -> Iterator[None]:
    """Set time limits that a slow machine never reaches."""
    with long_limits():
        yield


@pytest.fixture(scope="session", autouse=True)
def _variables() -> Iterator[None]:
    with methods_with_their_variables():
        yield


@pytest.fixture(scope="session", autouse=True)
def store() -> Iterator[str]:
    """Yield the store's address. Functions called in this process use the store."""
    with running_store() as url:
        yield url
        close_index()
        close_message_index()


@pytest.fixture
def store_actions(store: str) -> Iterator[set[tuple[str, str]]]:
    """Yield the DynamoDB actions that the test's requests need, each with its table."""
    actions: set[tuple[str, str]] = set()

    def record(operation: str, params: Any) -> None:
        if threading.current_thread().name.startswith(("rules", "function")):
            return  # an event of an earlier test is still handled
        if operation == "TransactWriteItems":
            for item in params["TransactItems"]:
                for kind, write in item.items():
                    actions.add((f"dynamodb:{kind}Item", write["TableName"].removeprefix("kho-")))
        elif operation in ("BatchWriteItem", "BatchGetItem"):
            actions.update((f"dynamodb:{operation}", table.removeprefix("kho-")) for table in params["RequestItems"])
        else:
            actions.add((f"dynamodb:{operation}", params["TableName"].removeprefix("kho-")))

    with intercept_requests(record):
        yield actions


@pytest.fixture
def tenant() -> str:
    """Return the id of a new tenant."""
    return f"tenant-{uuid4().hex}"


@pytest.fixture
def agent(tenant: str) -> DocumentAgent:
    """Return an agent that writes documents of that tenant."""
    return DocumentAgent(tenant)


@pytest.fixture(autouse=True)
def _index_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable indexing except in tests that request it: embedding thousands of documents is slow."""
    is_wanted = "indexing" in request.fixturenames
    monkeypatch.setattr(immediate_indexing._index, "_paused_until", -math.inf if is_wanted else math.inf)


@pytest.fixture
def indexing() -> None:
    """Index documents as they are written."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Stop the clock of documents. Return a function that advances it."""
    now = timestamps.now()

    def advance(**amount: float) -> None:
        nonlocal now
        now += timedelta(**amount) // timedelta(microseconds=1)

    monkeypatch.setattr(timestamps, "now", lambda: now)
    return advance


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the file that receives this process's log, at level DEBUG."""
    file = tmp_path / "kho.log"
    file.touch()
    monkeypatch.setenv("KHO_LOG_FILE", str(file))
    level = logger.log_level
    logger.setLevel("DEBUG")
    yield file
    logger.setLevel(level)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """Yield a running language model."""
    with model_server() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", running.address)
        yield running


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, model: ModelServer) -> Iterator[Callable[..., None]]:
    """Yield a function that changes settings for one test. A model is configured at first."""

    def change(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        config.cache_clear()
        language_model.cache_clear()

    change(KHO_MODEL_PROVIDER="openai", KHO_MODEL=MODEL, KHO_MODEL_URL=f"{model.address}/v1", KHO_MODEL_KEY="")
    yield change
    monkeypatch.undo()
    config.cache_clear()
    language_model.cache_clear()
