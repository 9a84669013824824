"""The contract of vector stores: the engine in this process and a server keep the same promises."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.search_engine.embedded import EmbeddedVectorStore
from shared.platform.config import ConfigurationError
from shared.platform.formats import DataTooNew
from shared.search.bm25 import passage_terms, question_terms
from shared.search.calibration import Calibration
from shared.search.embedding.models import Space
from shared.search.store import Bounds, Point, Scope, VectorQuery
from shared.search.store.qdrant_rest import QdrantCollection
from shared.search.store.server import connect
from tests.helpers.qdrant_server import QdrantServer, running_qdrant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shared.search.store import VectorStore

SPACE = Space("a model", 2, "query: ", "passage: ", Calibration(), tokens=True)
A, B, C = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "abc")


@pytest.fixture(scope="module")
def qdrant() -> Iterator[QdrantServer]:
    with running_qdrant() as running:
        yield running


@pytest.fixture(params=["embedded", "server"])
def engine(request: pytest.FixtureRequest, qdrant: QdrantServer, tmp_path: Path) -> Iterator[VectorStore]:
    """Yield an empty store of each engine."""
    opened: VectorStore = (
        EmbeddedVectorStore(SPACE, str(tmp_path))
        if request.param == "embedded"
        else connect(SPACE, qdrant.url, tmp_path.name)
    )
    yield opened
    opened.close()


def payload(tenant: str, collection: str = "c", **more: Any) -> dict[str, Any]:
    return {"tenant": tenant, "collection": collection, "document": "d", "kind": "passage", "version": 2, **more}


def point(id_: str, tenant: str, text: str, meaning: list[float], **more: Any) -> Point:
    return Point(id_, payload(tenant, text=text, **more), meaning, [meaning, meaning], passage_terms(text))


def test_points_are_found_by_dense_sparse_and_multivector(engine: VectorStore) -> None:
    engine.write([point(A, "t", "red fox", [1.0, 0.0]), point(B, "t", "blue whale", [0.0, 1.0])], 2)
    scope = Scope("t", ("c",), kind="passage")
    by_meaning, by_words, by_parts = engine.search(
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
    assert engine.terms([B])[B] == pytest.approx(
        dict(zip(passage_terms("blue whale").numbers, passage_terms("blue whale").weights, strict=True))
    )


def test_tenant_operations_are_isolated(engine: VectorStore) -> None:
    engine.write([point(A, "t", "red fox", [1.0, 0.0]), point(B, "u", "red fox", [1.0, 0.0])], 2)
    mine = Scope("t")
    assert [
        list(hits)
        for hits in engine.search([VectorQuery([1.0, 0.0], mine, 9), VectorQuery(question_terms("fox"), mine, 9, mine)])
    ] == [[A], [A]]
    assert engine.count(mine) == 1
    engine.erase(mine)
    assert list(engine.read([A, B])) == [B]


def test_scores_are_independent_of_other_tenants(engine: VectorStore) -> None:
    engine.write([point(A, "t", "red fox", [1.0, 0.0]), point(B, "t", "blue whale", [0.0, 1.0])], 2)
    ask = VectorQuery(question_terms("fox"), Scope("t"), 9, Scope("t"))
    (before,) = engine.search([ask])
    engine.write([point(C, "u", "fox", [1.0, 0.0])], 2)
    assert engine.search([ask]) == [before]


def test_weights_of_some_terms_are_read_alone(engine: VectorStore) -> None:
    engine.write([point(A, "t", "red fox fox", [1.0, 0.0]), point(B, "t", "blue whale", [0.0, 1.0])], 2)
    fox, heron = question_terms("fox heron").numbers
    whole = engine.terms([A, B])
    assert (len(whole[A]), len(whole[B])) == (2, 2)
    assert engine.terms([A, B], [heron, fox]) == {A: {fox: whole[A][fox]}}
    stored = engine.read_with_terms([A, B], [heron, fox])
    assert {id_: (fields["text"], terms) for id_, (fields, terms) in stored.items()} == {
        A: ("red fox fox", {fox: whole[A][fox]}),
        B: ("blue whale", {}),
    }


def test_records_without_vectors_change_no_score(engine: VectorStore) -> None:
    engine.write([point(A, "t", "red fox", [1.0, 0.0]), point(B, "t", "blue whale", [0.0, 1.0])], 2)
    scope = Scope("t")
    queries = VectorQuery([0.9, 0.1], scope, 9), VectorQuery(question_terms("fox"), scope, 9, scope)
    before = engine.search(queries)
    ids = [f"00000000-0000-4000-8000-00000000010{digit}" for digit in range(9)]
    engine.write([Point(id_, payload("t", kind="document")) for id_ in ids], 2)
    assert engine.search(queries) == before
    passages = replace(scope, kind="passage")
    meaning, words = queries
    assert before == engine.search([replace(meaning, scope=passages), replace(words, scope=passages, corpus=passages)])


def test_a_newer_version_is_never_overwritten(engine: VectorStore) -> None:
    engine.write([point(A, "t", "new", [1.0, 0.0], version=6)], 6)
    engine.write([point(A, "t", "old", [1.0, 0.0], version=4), point(B, "t", "old", [1.0, 0.0], version=4)], 4)
    assert {id_: hits["text"] for id_, hits in engine.read([A, B]).items()} == {A: "new", B: "old"}
    engine.erase(Scope("t", document="d", bounds=(Bounds("version", end=6),)))
    assert list(engine.read([A, B])) == [A]


def test_tags_must_all_match(engine: VectorStore) -> None:
    engine.write([point(A, "t", "x", [1.0, 0.0], tags=["p", "q"]), point(B, "t", "x", [1.0, 0.0], tags=["p"])], 2)
    (hits,) = engine.search([VectorQuery([1.0, 0.0], Scope("t", tags=("p", "q")), 9)])
    assert list(hits) == [A]


def test_one_value_of_each_key_is_required(engine: VectorStore) -> None:
    values = {A: ["s=1", "t=1"], B: ["s=2", "t=1"], C: ["s=1"]}
    engine.write([point(id_, "t", "x", [1.0, 0.0], metadata=own) for id_, own in values.items()], 2)
    wanted = [(("s=1",),), (("s=1", "s=2"), ("t=1",)), (("s=3",),)]
    found = engine.search([VectorQuery([1.0, 0.0], Scope("t", metadata=each), 9) for each in wanted])
    assert [set(hits) for hits in found] == [{A, C}, {A, B}, set()]


def test_one_of_the_roles_is_required(engine: VectorStore) -> None:
    engine.write([point(id_, "t", "x", [1.0, 0.0], role=role) for id_, role in zip((A, B, C), "uas", strict=True)], 2)
    (hits,) = engine.search([VectorQuery([1.0, 0.0], Scope("t", roles=("u", "s")), 9)])
    assert set(hits) == {A, C}


def test_bounds_begin_at_the_start_and_end_before_the_end(engine: VectorStore) -> None:
    year_2100 = 4_102_444_800_000_000
    times = {A: year_2100, B: year_2100 + 1, C: year_2100 + 2}
    engine.write([point(id_, "t", "x", [1.0, 0.0], at=at) for id_, at in times.items()], 2)
    middle, rest = (Scope("t", bounds=(Bounds("at", year_2100 + 1, end),)) for end in (year_2100 + 2, None))
    assert [set(hits) for hits in engine.search([VectorQuery([1.0, 0.0], each, 9) for each in (middle, rest)])] == [
        {B},
        {B, C},
    ]


def test_fields_of_a_scope_are_set_and_searched(engine: VectorStore) -> None:
    engine.write([point(A, "t", "x", [1.0, 0.0]), point(B, "t", "x", [1.0, 0.0], document="other")], 2)
    engine.set_fields(Scope("t", document="d"), {"subject": "person:17", "expires": 5})
    assert engine.read([A])[A] == payload("t", text="x", subject="person:17", expires=5)
    (hits,) = engine.search([VectorQuery([1.0, 0.0], Scope("t", subject="person:17"), 9)])
    assert list(hits) == [A]


def test_latest_points_come_first(engine: VectorStore) -> None:
    engine.write([point(id_, "t", "x", [1.0, 0.0], at=at) for id_, at in ((A, 30), (B, 10), (C, 20))], 2)
    engine.write([point("00000000-0000-4000-8000-00000000000d", "other", "x", [1.0, 0.0], at=40)], 2)
    assert [each["at"] for each in engine.latest(Scope("t"), 2)] == [30, 20]
    assert [each["at"] for each in engine.latest(Scope("t", bounds=(Bounds("at", end=30),)), 9)] == [20, 10]


def test_a_record_without_vectors_takes_the_place_of_a_point(engine: VectorStore) -> None:
    engine.write([point(A, "t", "red fox", [1.0, 0.0])], 2)
    engine.write([Point(A, payload("t", kind="removed", version=3))], 3)
    assert engine.read([A]) == {A: payload("t", kind="removed", version=3)}
    assert engine.terms([A]) == {}
    assert engine.search([VectorQuery([1.0, 0.0], Scope("t"), 9)]) == [{}]


def test_documents_can_be_excluded(engine: VectorStore) -> None:
    engine.write([point(id_, "t", "x", [1.0, 0.0], document=id_) for id_ in (A, B, C)], 2)
    (hits,) = engine.search([VectorQuery([1.0, 0.0], Scope("t", excluded_documents=(A, C)), 9)])
    assert list(hits) == [B]


def test_ids_can_be_excluded(engine: VectorStore) -> None:
    engine.write([point(A, "t", "red fox", [1.0, 0.0]), point(B, "t", "red fox", [1.0, 0.0])], 2)
    engine.erase(Scope("t", excluded_ids=(A,)))
    assert list(engine.read([A, B])) == [A]


def test_record_without_vectors_is_readable_but_not_searchable(engine: VectorStore) -> None:
    engine.write([Point(A, payload("t", kind="document"))], 2)
    assert engine.read([A])[A]["version"] == 2
    assert engine.search([VectorQuery([1.0, 0.0], Scope("t"), 9)]) == [{}]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "another"}, r"model 'a model' instead of 'another'"),
        ({"dimensions": 3}, "dimensions 2 instead of 3"),
        ({"question_prefix": ""}, "question_prefix 'query: ' instead of ''"),
        ({"tokens": False}, "tokens True instead of False"),
    ],
)
def test_vectors_of_another_model_are_rejected(
    qdrant: QdrantServer, tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    connect(SPACE, qdrant.url, "mine").close()
    EmbeddedVectorStore(SPACE, str(tmp_path)).close()
    with pytest.raises(ConfigurationError, match=message):
        connect(replace(SPACE, **changed), qdrant.url, "mine")
    with pytest.raises(ConfigurationError, match=message):
        EmbeddedVectorStore(replace(SPACE, **changed), str(tmp_path))


def test_foreign_collection_is_rejected(qdrant: QdrantServer) -> None:
    qdrant.create_foreign("theirs")
    with pytest.raises(ConfigurationError, match="not a knowledge index"):
        connect(SPACE, qdrant.url, "theirs")


def test_index_of_a_newer_program_is_refused_by_name(qdrant: QdrantServer) -> None:
    """A function that opens the index reads its format with the collection's other settings, and names it."""
    connect(SPACE, qdrant.url, "newer").close()
    collection = QdrantCollection(qdrant.url, "newer")
    collection.record({"format": 9, "program": "8.0.0"})
    with pytest.raises(DataTooNew, match=r"^The Qdrant collection 'newer' has format 9, .*: use Kho 8\.0\.0 or newer$"):
        connect(SPACE, qdrant.url, "newer")
