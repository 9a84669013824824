"""The contract of agent-data's documents, on the real store."""

from __future__ import annotations

import random
import string
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.rpc import timestamps
from shared.rpc.errors import Conflict, InvalidParams, NotFound
from tests.helpers.document_agent import (
    DocumentAgent,
    assert_consistent_tree,
    create_chain,
    expect_error,
    stored_items,
)

CREATED = {
    "document_id": "doc-1",
    "parent_id": "root",
    "content": {"mime_type": "text/markdown", "body": "# Tiêu đề\r\nNội dung\t\x00 ờ 汉字 \U0001f600"},
    "metadata": {"title": "Lộ trình", "tags": ["ops"], "source": "cursor", "n": [1, 2.5, None, {"x": True}]},
    "is_human_readable": True,
    "created_at": "2025-09-16T03:00:00Z",
}


def test_document_round_trip(agent: DocumentAgent) -> None:
    created = agent("create_document", **CREATED)
    assert (created["document_id"], created["revision"], created["parent_id"]) == ("doc-1", 1, "root")
    assert agent.get("doc-1") == CREATED | {"revision": 1, "updated_at": created["updated_at"]}
    assert agent("list_children") == {
        "children": [
            {name: value for name, value in CREATED.items() if name != "content"}
            | {"mime_type": "text/markdown", "revision": 1, "updated_at": created["updated_at"]}
        ]
    }


def test_optional_fields(agent: DocumentAgent) -> None:
    before = timestamps.now()
    agent("create_document", document_id="a", parent_id="root", content={"body": ""})
    document = agent.get("a")
    assert document["content"] == {"mime_type": "text/markdown", "body": ""}
    assert (document["metadata"], document["is_human_readable"]) == ({}, True)
    assert before <= timestamps.from_iso(document["created_at"]) <= timestamps.now()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.text(max_size=3000), mime_type=st.sampled_from(["text/markdown", "text/plain", "application/json"]))
def test_any_text_round_trips(agent: DocumentAgent, body: str, mime_type: str) -> None:
    document_id = uuid4().hex
    content = {"mime_type": mime_type, "body": body}
    agent("create_document", document_id=document_id, parent_id="root", content=content)
    assert agent.get(document_id)["content"] == content


@pytest.mark.parametrize("seed", [0, 1])
def test_body_of_2_mib(agent: DocumentAgent, tenant: str, seed: int) -> None:
    """One that compresses to nothing, and one that does not compress."""
    limit = 2 * 1024 * 1024
    alphabet = string.ascii_letters + string.digits + "+/"
    body = "Nội dung " * (limit // 11) if seed == 0 else "".join(random.Random(seed).choices(alphabet, k=limit))
    agent.create("large", body=body)
    assert agent.get("large")["content"]["body"] == body
    agent("update_document", document_id="large", patch={"metadata": {"title": "same body"}})
    assert agent.get("large")["content"]["body"] == body
    agent("update_document", document_id="large", patch={"content": {"body": "small"}})
    assert agent.get("large")["content"]["body"] == "small"
    assert agent.get("large", revision=2)["content"]["body"] == body
    sizes = [len(str(item)) for items in stored_items(tenant).values() for item in items.values()]
    assert len(sizes) < 20
    with pytest.raises(InvalidParams) as raised:
        agent.create("larger", body="ờ" * (limit // 3 + 1))
    assert raised.value.details[0]["field"] == "content.body"


@pytest.mark.parametrize(
    "document_id", ["a", "doc-pf-032", "A.b_c:D-9", "3f0c1a52-8a77-4ab1-9d35-6f1f3b1e0c11", "x" * 128]
)
def test_valid_ids(agent: DocumentAgent, document_id: str) -> None:
    agent.create(document_id)
    assert agent.children() == [document_id]


@pytest.mark.parametrize("document_id", ["", "root", "x" * 129, "a b", "a#b", "a/b", "ờ", "a\n", "\x00"])
def test_invalid_ids(agent: DocumentAgent, document_id: str) -> None:
    with pytest.raises(InvalidParams) as raised:
        agent.create(document_id)
    assert raised.value.details[0]["field"] == "document_id"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("content", {"mime_type": "text/plain"}),
        ("content", {"mime_type": "text/html", "body": "x"}),
        ("content", {"body": "x", "charset": "utf-8"}),
        ("metadata", {"tags": "ops"}),
        ("metadata", {"tags": [1]}),
        ("metadata", {"title": 1}),
        ("metadata", {"x": "x" * 65536}),
        ("created_at", "yesterday"),
        ("is_human_readable", "yes"),
        ("request_id", ""),
        ("request_id", "two words"),
    ],
)
def test_invalid_fields(agent: DocumentAgent, tenant: str, field: str, wrong: Any) -> None:
    with pytest.raises(InvalidParams) as raised:
        agent("create_document", **CREATED | {field: wrong})
    assert raised.value.details[0]["field"].partition(".")[0] == field
    assert not stored_items(tenant)


def test_ids_are_never_reused(agent: DocumentAgent) -> None:
    agent.create("a")
    expect_error(Conflict, "ALREADY_EXISTS", agent.create, "a")
    agent("delete_document", document_id="a")
    expect_error(Conflict, "ALREADY_EXISTS", agent.create, "a", "nowhere")
    other = DocumentAgent(f"{agent.tenant}-other")
    other.create("a", body="theirs")
    assert other.get("a")["content"]["body"] == "theirs"


def test_parent_must_exist(agent: DocumentAgent) -> None:
    assert expect_error(NotFound, "NOT_FOUND", agent.create, "a", "nowhere").details == {"parent_id": "nowhere"}
    agent.create("gone")
    agent("delete_document", document_id="gone")
    expect_error(Conflict, "PARENT_DELETED", agent.create, "a", "gone")
    agent.create("b")
    expect_error(Conflict, "PARENT_DELETED", agent.move, "b", "gone")
    expect_error(NotFound, "NOT_FOUND", agent.move, "b", "nowhere")
    expect_error(NotFound, "NOT_FOUND", agent.children, "gone")
    expect_error(NotFound, "NOT_FOUND", agent.children, "nowhere")


UPDATED = {"content": {"body": "new"}, "metadata": {"title": "v2"}, "is_human_readable": False}


@pytest.mark.parametrize(
    ("patch", "mask", "changed"),
    [
        (UPDATED, None, {"content", "metadata", "is_human_readable"}),
        (UPDATED, ["content", "metadata", "is_human_readable"], {"content", "metadata", "is_human_readable"}),
        (UPDATED, ["metadata"], {"metadata"}),
        (UPDATED, ["is_human_readable", "content"], {"is_human_readable", "content"}),
        ({"metadata": {"title": "v2"}}, None, {"metadata"}),
        ({"is_human_readable": False}, None, {"is_human_readable"}),
        ({"content": {"body": "new"}}, None, {"content"}),
    ],
)
def test_update_changes_only_masked_fields(
    agent: DocumentAgent, patch: dict[str, Any], mask: list[str] | None, changed: set[str]
) -> None:
    agent("create_document", **CREATED)
    masked = {} if mask is None else {"update_mask": mask}
    agent("update_document", document_id="doc-1", patch=patch, **masked)
    now, before = agent.get("doc-1"), agent.get("doc-1", revision=1)
    assert now["content"] == {
        "mime_type": "text/markdown",
        "body": "new" if "content" in changed else CREATED["content"]["body"],  # type: ignore[index]
    }
    for name in ("metadata", "is_human_readable"):
        assert now[name] == (UPDATED[name] if name in changed else CREATED[name])
    assert {name: before[name] for name in CREATED} == CREATED
    assert agent.history("doc-1")[1]["fields"] == [name for name in UPDATED if name in changed]


def test_mask_clears_optional_fields(agent: DocumentAgent) -> None:
    agent("create_document", **CREATED)
    agent("update_document", document_id="doc-1", patch={}, update_mask=["metadata"])
    assert agent.get("doc-1")["metadata"] == {}
    for name in ("content", "is_human_readable"):
        with pytest.raises(InvalidParams) as raised:
            agent("update_document", document_id="doc-1", patch={"metadata": {}}, update_mask=["metadata", name])
        assert raised.value.details[0]["field"] == f"patch.{name}"
    nothings: list[dict[str, Any]] = [
        {"patch": {}},
        {"patch": {"metadata": None}},
        {"patch": UPDATED, "update_mask": []},
    ]
    for nothing in nothings:
        with pytest.raises(InvalidParams):
            agent("update_document", document_id="doc-1", **nothing)
    with pytest.raises(InvalidParams):
        agent("update_document", document_id="doc-1", patch=UPDATED, update_mask=["parent_id"])
    assert agent.get("doc-1")["revision"] == 2


def test_stale_revision_error_names_the_current_revision(agent: DocumentAgent) -> None:
    agent.create("a")
    agent("update_document", document_id="a", patch={"metadata": {}}, last_known_revision=1)
    known = {"document_id": "a", "patch": {"metadata": {"title": "lost"}}}
    for stale in (1, 3):
        error = expect_error(Conflict, "CONFLICT", agent, "update_document", **known, last_known_revision=stale)
        assert error.details["current_revision"] == 2
    assert agent.get("a")["metadata"] == {}
    assert agent("update_document", **known, last_known_revision=2)["revision"] == 3


def test_each_write_is_a_revision(agent: DocumentAgent) -> None:
    agent.create("p")
    agent.create("a")
    agent("update_document", document_id="a", patch={"content": {"body": "two"}})
    agent.move("a", "p")
    agent("delete_document", document_id="a", reason="retired", deleted_by="cursor-agent")
    agent("restore_document", document_id="a")
    history = agent.history("a")
    assert [(each["revision"], each["from_revision"], each["action"]) for each in history] == [
        (1, 0, "create_document"),
        (2, 1, "update_document"),
        (3, 2, "move_document"),
        (4, 3, "delete_document"),
        (5, 4, "restore_document"),
    ]
    assert {each["by"]["sub"] for each in history} == {"agent@example.com"}
    assert {tuple(each["by"]["labels"]) for each in history} == {("cursor",)}
    assert {each["correlation_id"] for each in history} == {"correlated"}
    assert [each["parent_id"] for each in history] == ["root", "root", "p", "p", "p"]
    assert (history[3]["reason"], history[3]["deleted_by"]) == ("retired", "cursor-agent")
    assert sorted(each["at"] for each in history) == [each["at"] for each in history]
    was = agent.get("a", revision=2)
    assert (was["parent_id"], was["revision"], was["content"]["body"]) == ("root", 2, "two")
    assert agent.get("a", revision=1)["content"]["body"] == "x"
    assert agent.get("a", revision=5) == agent.get("a")
    expect_error(NotFound, "NOT_FOUND", agent.get, "a", revision=6)
    assert_consistent_tree(agent.tenant)


def test_a_list_is_paged_in_order(agent: DocumentAgent) -> None:
    names = [f"d{number:03d}" for number in range(25)]
    for name in names:
        agent.create(name)
    for name in names[3:9]:
        agent("delete_document", document_id=name)
    remaining = names[:3] + names[9:]
    for limit in (1, 4, 19, 100):
        assert agent.children(limit=limit) == remaining
    first = agent("list_children", limit=5)
    agent.move(first["children"][0]["document_id"], "root")
    rest = agent("list_children", limit=1000, cursor=first["next_cursor"])["children"]
    assert [each["document_id"] for each in rest] == [*remaining[5:], remaining[0]], "what moved is where it is now"
    for cursor in ("nonsense", "WzFd", "WyJhIiwgImIiXQ"):
        with pytest.raises(InvalidParams):
            agent("list_children", cursor=cursor)


def test_page_is_limited_by_response_size(agent: DocumentAgent) -> None:
    for number in range(90):
        agent.create(f"d{number:02d}", metadata={"x": "\\" * 32000})
    page = agent("list_children", limit=1000)
    assert 10 < len(page["children"]) < 90
    assert len(agent.children()) == 90


def test_children_tell_whether_they_have_children(agent: DocumentAgent) -> None:
    """A listed document says on request whether there is anything below it."""
    create_chain(agent, 2)
    agent.create("leaf")
    assert [child["has_children"] for child in agent("list_children", has_children=True)["children"]] == [True, False]
    assert "has_children" not in agent("list_children")["children"][0]


def test_ancestors_come_from_the_top_down(agent: DocumentAgent) -> None:
    """The documents above one are listed from the top down with their titles, also after a move."""
    names = create_chain(agent, 5)
    agent.create("titled", metadata={"title": "Sổ tay"})
    assert agent("list_ancestors", document_id=names[4])["ancestors"] == [{"document_id": id_} for id_ in names[:4]]
    assert agent("list_ancestors", document_id="titled") == {"ancestors": []}
    agent.move(names[1], "titled")
    above = [{"document_id": "titled", "title": "Sổ tay"}, *({"document_id": id_} for id_ in names[1:4])]
    assert agent("list_ancestors", document_id=names[4])["ancestors"] == above
    agent("delete_document", document_id=names[4])
    for missing in (names[4], "nowhere"):
        expect_error(NotFound, "NOT_FOUND", agent, "list_ancestors", document_id=missing)


def test_history_from_the_newest_change(agent: DocumentAgent) -> None:
    """Pages of the newest changes go back to the first one."""
    agent.create("a")
    for number in range(14):
        agent("update_document", document_id="a", patch={"metadata": {"n": number}})
    entries = list(agent.pages("document_history", "history", 7, document_id="a", newest_first=True))
    assert [each["revision"] for each in entries] == list(range(15, 0, -1))


def test_a_long_history_is_paged(agent: DocumentAgent) -> None:
    agent.create("a")
    for number in range(30):
        agent("update_document", document_id="a", patch={"metadata": {"n": number}})
    entries = list(agent.pages("document_history", "history", 7, document_id="a"))
    assert [each["revision"] for each in entries] == list(range(1, 32))
    assert agent.get("a", revision=11)["metadata"] == {"n": 9}
    for cursor in ("nonsense", "WyJhIl0", "Wy0xXQ"):
        with pytest.raises(InvalidParams):
            agent("document_history", document_id="a", cursor=cursor)
