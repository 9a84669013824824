"""Handling of a Qdrant server's errors, silence, and unsupported versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.aws import secrets_manager
from shared.platform.config import ConfigurationError
from shared.rpc.errors import Unavailable
from shared.search.bm25 import SparseTerms
from shared.search.embedding import RemoteText
from shared.search.embedding.models import E5_SMALL
from shared.search.store import Point, Scope, VectorQuery
from shared.search.store.qdrant_rest import QdrantError
from shared.search.store.server import connect
from tests.helpers.qdrant_server import QdrantServer, running_qdrant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.search.store.server import QdrantServerStore

ID = "00000000-0000-4000-8000-00000000000a"


@pytest.fixture
def qdrant() -> Iterator[QdrantServer]:
    with running_qdrant() as running:
        yield running


@pytest.fixture
def index(qdrant: QdrantServer) -> Iterator[QdrantServerStore]:
    """Yield a collection of that server."""
    connected = connect(E5_SMALL, qdrant.url, "kho")
    yield connected
    connected.close()


def test_idf_scope_filter_is_sent(qdrant: QdrantServer, index: QdrantServerStore) -> None:
    mine = Scope("t", ("c",), kind="passage")
    asks = [VectorQuery(RemoteText("query: why", "e5"), mine, 3), VectorQuery(SparseTerms([7], [1.0]), mine, 3, mine)]
    assert index.search(asks) == [{}, {}]
    meaning, words = qdrant.asked["POST /collections/kho/points/query/batch"]["searches"]
    assert meaning["query"]["nearest"] == {"text": "query: why", "model": "e5"}
    assert words["params"]["idf"]["corpus"] == words["filter"] == meaning["filter"]
    assert words["filter"]["must"][0] == {"key": "tenant", "match": {"value": "t"}}


def test_scores_are_of_the_vectors_and_not_of_their_bytes(qdrant: QdrantServer, index: QdrantServerStore) -> None:
    """A server returns the scores of the quantized vectors, unless it is asked to rescore."""
    mine = Scope("t", ("c",), kind="passage")
    vector, terms = [1.0] * E5_SMALL.dimensions, SparseTerms([7], [1.0])
    index.search([VectorQuery(near, mine, 3) for near in (vector, [vector], terms)])
    meaning, parts, words = qdrant.asked["POST /collections/kho/points/query/batch"]["searches"]
    assert meaning["params"] == {"quantization": {"rescore": True, "oversampling": 2}}
    assert "params" not in parts
    assert "params" not in words


def test_upsert_is_conditional_on_the_version(qdrant: QdrantServer, index: QdrantServerStore) -> None:
    index.write([Point(ID, {"version": 4}, RemoteText("passage: x", "e5"))], 4)
    request = qdrant.asked["PUT /collections/kho/points"]
    assert request["update_filter"]["must"] == [{"key": "version", "range": {"lte": 4}}]
    assert request["points"][0]["vector"]["meaning"] == {"text": "passage: x", "model": "e5"}


def test_server_without_the_needed_vector_types_is_rejected() -> None:
    with (
        running_qdrant("1.19.1") as old,
        pytest.raises(ConfigurationError, match=r"Qdrant 1\.19\.1 .* too old"),
    ):
        connect(E5_SMALL, old.url, "kho")


@pytest.mark.parametrize("status", [401, 403])
def test_invalid_api_key_is_reported(qdrant: QdrantServer, status: int) -> None:
    qdrant.refusal = status
    with pytest.raises(ConfigurationError, match="rejects the key"):
        connect(E5_SMALL, qdrant.url, "kho")


@pytest.mark.usefixtures("index")
def test_incomplete_collection_setup_is_completed(qdrant: QdrantServer) -> None:
    qdrant.indexed.clear()
    connect(E5_SMALL, qdrant.url, "kho").close()
    tenant = {"tenant": {"type": "keyword", "is_tenant": True}}
    names = ("collection", "document", "kind", "tags", "role", "subject", "metadata")
    keywords = {field: {"type": "keyword"} for field in names}
    integers = {field: {"type": "integer"} for field in ("version", "at", "expires", "metadata_revision")}
    indexed = {field: schema["params"] for field, schema in qdrant.indexed["kho"].items()}
    assert indexed == tenant | keywords | integers


@pytest.mark.parametrize("status", [500, 503, 429])
def test_transient_errors_are_unavailable(qdrant: QdrantServer, index: QdrantServerStore, status: int) -> None:
    qdrant.refusal = status
    with pytest.raises(Unavailable):
        index.erase(Scope("t"))


def test_bad_request_is_an_internal_error(qdrant: QdrantServer, index: QdrantServerStore) -> None:
    qdrant.refusal = 400
    with pytest.raises(QdrantError):
        index.erase(Scope("t"))


def test_unreachable_server_is_unavailable(qdrant: QdrantServer, index: QdrantServerStore) -> None:
    qdrant.stop()
    with pytest.raises(Unavailable):
        index.count(Scope("t"))
    with pytest.raises(Unavailable):
        connect(E5_SMALL, qdrant.url, "kho")


def test_a_refused_key_is_read_again(qdrant: QdrantServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rotated secret takes effect at once if the server refuses the old one."""
    secrets = iter(["old", "new"])
    monkeypatch.setenv("KHO_QDRANT_KEY_SECRET", "arn:aws:secretsmanager:kho")
    monkeypatch.setattr(secrets_manager, "_fetch", lambda _: next(secrets))
    secrets_manager.forget_secrets()
    connected = connect(E5_SMALL, qdrant.url, "kho")
    assert qdrant.keys == {"old"}
    qdrant.revoked_keys.add("old")
    assert connected.count(Scope("t")) == 0
    assert qdrant.keys == {"old", "new"}
    connected.close()
    secrets_manager.forget_secrets()
