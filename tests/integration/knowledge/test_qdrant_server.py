"""What becomes of a Qdrant server's answers: refusals, silence, and a version that could not keep our promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from qdrant_client.http.exceptions import UnexpectedResponse

from shared.config import ConfigurationError
from shared.knowledge.embedding import RemoteText
from shared.knowledge.embedding.spaces import E5_SMALL
from shared.knowledge.lexical import Terms
from shared.knowledge.store import Ask, Point, Scope
from shared.knowledge.store.server import connect
from shared.rpc.errors import Unavailable
from tests.qdrant_cloud import described, serving

if TYPE_CHECKING:
    from tests.qdrant_cloud import Answer

ID = "00000000-0000-4000-8000-00000000000a"


class Fake:
    """A server with an index of ours, that keeps what it is asked."""

    def __init__(self, version: str = "1.19.0") -> None:
        self.version = version
        self.status = 200
        self.asked: dict[str, Any] = {}
        self.schemas: dict[str, Any] = {}

    def __call__(self, method: str, path: str, body: Any) -> Answer:
        self.asked[f"{method} {path}"] = body
        if path.endswith("/index"):
            self.schemas[body["field_name"]] = body["field_schema"]
        if path == "/":
            return 200, {"title": "qdrant", "version": self.version}
        if path.endswith("/exists"):
            if self.status in (401, 403):
                return self.status, {"status": {"error": "no"}}
            return 200, {"result": {"exists": True}}
        if method == "GET":
            return 200, {"result": described(E5_SMALL.record())}
        if self.status != 200:
            return self.status, {"status": {"error": "no"}}
        if path.endswith("/query/batch"):
            return 200, {"result": [{"points": []} for _ in body["searches"]]}
        return 200, {"result": {"operation_id": 1, "status": "completed"}}


def test_whose_words_a_rarity_is_counted_among_is_sent() -> None:
    fake = Fake()
    with serving(fake) as url:
        store = connect(E5_SMALL, url, "", "kho")
        mine = Scope("t", ("c",), kind="passage")
        assert store.search([Ask(RemoteText("query: why", "e5"), mine, 3), Ask(Terms([7], [1.0]), mine, 3, mine)]) == [
            {},
            {},
        ]
        store.close()
    meaning, words = fake.asked["POST /collections/kho/points/query/batch"]["searches"]
    assert meaning["query"]["nearest"] == {"text": "query: why", "model": "e5"}
    assert words["params"]["idf"]["corpus"] == words["filter"] == meaning["filter"]
    assert words["filter"]["must"][0] == {"key": "tenant", "match": {"value": "t"}}


def test_a_write_names_the_versions_that_it_may_replace() -> None:
    fake = Fake()
    with serving(fake) as url:
        store = connect(E5_SMALL, url, "", "kho")
        store.write([Point(ID, {"version": 4}, RemoteText("passage: x", "e5"))], 4)
        store.close()
    sent = fake.asked["PUT /collections/kho/points"]
    assert sent["update_filter"]["must"] == [{"key": "version", "range": {"lte": 4.0}}]
    assert sent["points"][0]["vector"]["meaning"] == {"text": "passage: x", "model": "e5"}


def test_a_server_that_could_not_keep_tenants_apart_is_refused() -> None:
    with serving(Fake("1.18.2")) as url, pytest.raises(ConfigurationError, match=r"Qdrant 1\.18\.2 .* too old"):
        connect(E5_SMALL, url, "", "kho")


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_said_to_be_one(status: int) -> None:
    fake = Fake()
    fake.status = status
    with serving(fake) as url, pytest.raises(ConfigurationError, match="refuses the key"):
        connect(E5_SMALL, url, "", "kho")


def test_what_whoever_made_the_collection_left_undone_is_done() -> None:
    fake = Fake()
    with serving(fake) as url:
        connect(E5_SMALL, url, "", "kho").close()
    tenant = {"type": "keyword", "is_tenant": True}
    others = dict.fromkeys(("collection", "document", "kind", "tags"), "keyword")
    assert fake.schemas == {"tenant": tenant, "version": "integer"} | others


@pytest.mark.parametrize("status", [500, 503, 429])
def test_what_may_pass_is_unavailable(status: int) -> None:
    fake = Fake()
    with serving(fake) as url:
        store = connect(E5_SMALL, url, "", "kho")
        fake.status = status
        with pytest.raises(Unavailable):
            store.erase(Scope("t"))
        store.close()


def test_a_refusal_is_our_own_defect() -> None:
    fake = Fake()
    with serving(fake) as url:
        store = connect(E5_SMALL, url, "", "kho")
        fake.status = 400
        with pytest.raises(UnexpectedResponse):
            store.erase(Scope("t"))
        store.close()


def test_a_server_that_is_gone_is_unavailable() -> None:
    with serving(Fake()) as url:
        store = connect(E5_SMALL, url, "", "kho")
    with pytest.raises(Unavailable):
        store.count(Scope("t"))
    with pytest.raises(Unavailable):
        connect(E5_SMALL, url, "", "kho")
    store.close()
