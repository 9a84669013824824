"""The vector store's contract over a Qdrant client, whose local mode replaces the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client import QdrantClient

from shared.config import ConfigurationError
from shared.knowledge.bm25 import passage_terms, question_terms
from shared.knowledge.embedding.models import Space
from shared.knowledge.store import Point, Scope, VectorQuery
from shared.knowledge.store.server import QdrantServerStore

if TYPE_CHECKING:
    from collections.abc import Iterator

SPACE = Space("a model", 2, "query: ", "passage: ", floor=0.0, reach=1.0, tokens=True)
A, B, C = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "abc")


# Local mode warns that some settings only affect servers.
pytestmark = pytest.mark.filterwarnings("ignore:.*[Ll]ocal")


@pytest.fixture
def client() -> Iterator[QdrantClient]:
    client = QdrantClient(":memory:")
    yield client
    client.close()


@pytest.fixture
def server(client: QdrantClient) -> QdrantServerStore:
    return QdrantServerStore(client, "kho", SPACE)


def payload(tenant: str, collection: str = "c", **more: Any) -> dict[str, Any]:
    return {"tenant": tenant, "collection": collection, "document": "d", "kind": "passage", "version": 2, **more}


def point(id_: str, tenant: str, text: str, meaning: list[float], **more: Any) -> Point:
    return Point(id_, payload(tenant, text=text, **more), meaning, [meaning, meaning], passage_terms(text))


def test_points_are_found_by_dense_sparse_and_multivector(server: QdrantServerStore) -> None:
    server.write([point(A, "t", "red fox", [1.0, 0.0]), point(B, "t", "blue whale", [0.0, 1.0])], 2)
    scope = Scope("t", ("c",), kind="passage")
    by_meaning, by_words, by_parts = server.search(
        [
            VectorQuery([0.9, 0.1], scope, 2),
            VectorQuery(question_terms("whale"), scope, 2, scope),
            VectorQuery([[0.0, 1.0], [0.0, 1.0], [0.1, 0.9]], scope, 2),
        ]
    )
    assert list(by_meaning) == [A, B]
    assert list(by_words) == [B]
    assert list(by_parts) == [B, A]
    assert by_parts[B] == pytest.approx(3, abs=0.05)
    assert server.terms([B])[B] == pytest.approx(
        dict(zip(passage_terms("blue whale").numbers, passage_terms("blue whale").weights, strict=True))
    )


def test_tenant_operations_are_isolated(server: QdrantServerStore) -> None:
    server.write([point(A, "t", "red fox", [1.0, 0.0]), point(B, "u", "red fox", [1.0, 0.0])], 2)
    mine = Scope("t")
    assert [
        list(hits)
        for hits in server.search([VectorQuery([1.0, 0.0], mine, 9), VectorQuery(question_terms("fox"), mine, 9, mine)])
    ] == [[A], [A]]
    assert server.count(mine) == 1
    server.erase(mine)
    assert list(server.read([A, B])) == [B]


def test_scores_are_independent_of_other_tenants(server: QdrantServerStore) -> None:
    server.write([point(A, "t", "red fox", [1.0, 0.0]), point(B, "t", "blue whale", [0.0, 1.0])], 2)
    ask = VectorQuery(question_terms("fox"), Scope("t"), 9, Scope("t"))
    (before,) = server.search([ask])
    server.write([point(C, "u", "fox", [1.0, 0.0])], 2)
    assert server.search([ask]) == [before]


def test_a_newer_version_is_never_overwritten(server: QdrantServerStore) -> None:
    server.write([point(A, "t", "new", [1.0, 0.0], version=6)], 6)
    server.write([point(A, "t", "old", [1.0, 0.0], version=4), point(B, "t", "old", [1.0, 0.0], version=4)], 4)
    assert {id_: hits["text"] for id_, hits in server.read([A, B]).items()} == {A: "new", B: "old"}
    server.erase(Scope("t", document="d", before_version=6))
    assert list(server.read([A, B])) == [A]


def test_tags_must_all_match(server: QdrantServerStore) -> None:
    server.write([point(A, "t", "x", [1.0, 0.0], tags=["p", "q"]), point(B, "t", "x", [1.0, 0.0], tags=["p"])], 2)
    (hits,) = server.search([VectorQuery([1.0, 0.0], Scope("t", tags=("p", "q")), 9)])
    assert list(hits) == [A]


def test_documents_can_be_excluded(server: QdrantServerStore) -> None:
    server.write([point(id_, "t", "x", [1.0, 0.0], document=id_) for id_ in (A, B, C)], 2)
    (hits,) = server.search([VectorQuery([1.0, 0.0], Scope("t", excluded_documents=(A, C)), 9)])
    assert list(hits) == [B]


def test_record_without_vectors_is_readable_but_not_searchable(server: QdrantServerStore) -> None:
    server.write([Point(A, payload("t", kind="document"))], 2)
    assert server.read([A])[A]["version"] == 2
    assert server.search([VectorQuery([1.0, 0.0], Scope("t"), 9)]) == [{}]


def test_vectors_of_another_model_are_rejected(client: QdrantClient, server: QdrantServerStore) -> None:
    with pytest.raises(ConfigurationError, match=r"model 'a model' instead of 'another'"):
        QdrantServerStore(client, "kho", Space("another", 2, "query: ", "passage: ", floor=0.0, reach=1.0, tokens=True))
    with pytest.raises(ConfigurationError, match="dimensions 2 instead of 3"):
        QdrantServerStore(client, "kho", Space("a model", 3, "query: ", "passage: ", floor=0.0, reach=1.0, tokens=True))
    with pytest.raises(ConfigurationError, match="question_prefix 'query: ' instead of ''"):
        QdrantServerStore(client, "kho", Space("a model", 2, "", "passage: ", floor=0.0, reach=1.0, tokens=True))


def test_foreign_collection_is_rejected(client: QdrantClient) -> None:
    client.create_collection("theirs", vectors_config={})
    with pytest.raises(ConfigurationError, match="not a knowledge index"):
        QdrantServerStore(client, "theirs", SPACE)
