"""Tenant isolation: at every method and endpoint, another tenant's data is answered like missing data."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from shared.rpc.catalogue import catalogue
from tests.e2e.tenant_isolation.case import OWNER
from tests.e2e.tenant_isolation.conversations import MEMORY, make_conversation
from tests.e2e.tenant_isolation.documents import AGENT
from tests.e2e.tenant_isolation.knowledge import RESEARCH
from tests.e2e.tenant_isolation.methods import CASES, SHARED, WITHOUT_DATA
from tests.helpers.api_client import ApiClient, make_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.kho_server import KhoServer


@pytest.fixture(scope="module")
def owner(guarded: KhoServer) -> ApiClient:
    return ApiClient(guarded, make_key(guarded.data, OWNER, "admin")["key"])


@pytest.fixture(scope="module")
def stranger(guarded: KhoServer) -> ApiClient:
    """Return another tenant's caller with every role. Its name begins with the owner's name."""
    return ApiClient(guarded, make_key(guarded.data, f"{OWNER}b", "admin")["key"])


def test_every_method_has_an_isolation_case() -> None:
    """A new method needs a case here, or an entry among the methods without stored data."""
    assert set(CASES) | WITHOUT_DATA | SHARED == set(catalogue().methods)


def endpoints_of(method: str) -> list[str]:
    return ["direct", "jsonrpc", "action"] if method.startswith(AGENT) else ["direct", "jsonrpc"]


@pytest.mark.parametrize(
    ("method", "number"), [(method, number) for method in sorted(CASES) for number in range(len(CASES[method]))]
)
def test_other_tenants_data_is_not_found(owner: ApiClient, stranger: ApiClient, method: str, number: int) -> None:
    case, foreign_id, before = CASES[method][number], "", None
    for endpoint in endpoints_of(method):
        ask: Callable[..., tuple[int, Any]] = getattr(stranger, endpoint)
        if not foreign_id:
            id_ = uuid4().hex
            foreign_id = case.make(owner, id_) or id_
            before = case.seen(owner, foreign_id)
            assert "secret" in json.dumps(before)
            case.prepare(stranger, foreign_id)
        missing_id = uuid4().hex
        case.prepare(stranger, missing_id)
        missing_answer = comparable(ask(method, **case.params(missing_id)), missing_id)
        foreign_answer = comparable(ask(method, **case.params(foreign_id)), foreign_id)
        assert foreign_answer == missing_answer
        assert "secret" not in foreign_answer
        assert case.seen(owner, foreign_id) == before
        if '"error"' not in foreign_answer:
            foreign_id = ""  # the stranger may have an object of its own under this id now


def comparable(answer: tuple[int, Any], id_: str) -> str:
    """Return status and body, without the requested id and the time."""
    text = json.dumps(answer).replace(id_, "<id>")
    return re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "<time>", text)


def test_cursors_do_not_cross_tenants(owner: ApiClient, stranger: ApiClient) -> None:
    id_ = uuid4().hex
    make_conversation(owner, id_)
    make_conversation(stranger, id_)
    cursor = owner.result(f"{MEMORY}/get_all_messages", conversation_id=id_, limit=2)["next_cursor"]
    for _ in range(2):
        owner.result(f"{MEMORY}/get_or_create", conversation_id=uuid4().hex)
    conversations = owner.result("memory-server/resources/list", limit=1)["nextCursor"]
    for method, params in (
        (f"{MEMORY}/get_all_messages", {"conversation_id": id_, "cursor": cursor}),
        ("memory-server/resources/list", {"cursor": conversations}),
    ):
        status, body = stranger.direct(method, **params)
        assert (status, body["error"]["details"][0]["field"]) == (400, "cursor")


def test_equal_ids_belong_to_each_tenant_separately(owner: ApiClient, stranger: ApiClient) -> None:
    id_ = uuid4().hex
    for client, words in ((owner, "of a"), (stranger, "of b")):
        client.result(f"{MEMORY}/add_message", conversation_id=id_, role="user", content=words)
    for client, words in ((owner, "of a"), (stranger, "of b")):
        messages = client.result(f"{MEMORY}/get_all_messages", conversation_id=id_)["messages"]
        assert [each["content"] for each in messages] == [words]
    stranger.result(f"{MEMORY}/delete", conversation_id=id_)
    assert owner.result(f"{MEMORY}/get_context", conversation_id=id_)["messages"] == [
        {"role": "user", "content": "of a"}
    ]


def test_scores_do_not_reveal_other_tenants(owner: ApiClient, stranger: ApiClient) -> None:
    """The rarity of a word is computed from the caller's own passages."""
    for client in (stranger, owner):
        client.result(f"{RESEARCH}/manage_collections", action="create", collection_name="scores")
    for number, text in enumerate(("A turnip is a root.", "A marrow is a fruit.", "A leek is a stem.")):
        stranger.result(f"{RESEARCH}/augment_knowledge", content=text, source=str(number), collection="scores")
    before = stranger.result(f"{RESEARCH}/query_knowledge_base", query="turnip root", collections="scores")
    turnips = [{"path": str(number), "content": f"turnip {number}"} for number in range(20)]
    owner.result(f"{RESEARCH}/ingest_documents", collection="scores", documents=turnips)
    after = stranger.result(f"{RESEARCH}/query_knowledge_base", query="turnip root", collections="scores")
    assert before["results"]
    assert after == before
