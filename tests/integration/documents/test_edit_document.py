"""edit_document on the real store: parts of documents, all edits of a call or none, by many writers at once."""

from __future__ import annotations

import json
import random
import string
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.documents import revisions
from shared.documents.models import MAX_BODY_BYTES
from shared.platform.locks import FairLock, NamedLocks
from shared.rpc.errors import Conflict, InvalidParams, KhoError, NotFound, TooLarge
from tests.helpers.document_agent import DocumentAgent, assert_consistent_tree, expect_error
from tests.helpers.interference import another_caller
from tests.helpers.size import sized

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE = "# Ferns\n\nFerns like shade.\n\n## Water\n\nTwice a day.\n"


@pytest.fixture
def guide(agent: DocumentAgent) -> str:
    """Create a document of Markdown."""
    metadata = {"title": "Ferns", "tags": ["garden"], "status": "draft"}
    content = {"mime_type": "text/markdown", "body": GUIDE}
    agent("create_document", document_id="guide", parent_id="root", content=content, metadata=metadata)
    return "guide"


def edit(agent: DocumentAgent, *edits: dict[str, Any], **params: Any) -> Any:
    return agent("edit_document", document_id="guide", edits=list(edits), **params)


def body(agent: DocumentAgent, document_id: str = "guide", **params: Any) -> str:
    return str(agent.get(document_id, **params)["content"]["body"])


def replace(old: str, new: str, **params: Any) -> dict[str, Any]:
    return {"replace": {"old": old, "new": new, **params}}


@pytest.mark.usefixtures("guide")
def test_edits_apply_in_order(agent: DocumentAgent) -> None:
    """The answer has the revision and a line about the change, which the history keeps."""
    result = edit(
        agent,
        {"append": "\nMore"},
        replace("More", "More text"),
        {"section": {"heading": ["Ferns", "Water"], "body": "Once a day.\n\nMore text"}},
        {"prepend": "New\n\n"},
        {"metadata": {"status": None, "title": "Ferns and mosses"}},
    )
    assert body(agent) == f"New\n\n{GUIDE.replace('Twice a day.', 'Once a day.')}\nMore text"
    document = agent.get("guide")
    assert document["metadata"] == {"title": "Ferns and mosses", "tags": ["garden"]}
    assert (result["document_id"], result["revision"], document["revision"]) == ("guide", 2, 2)
    assert result["changes"] == "appended lines 8-9; replaced line 9; section Ferns > Water: lines 7-9; and 2 more"
    entry = agent.history("guide")[-1]
    assert entry["action"] == "edit_document"
    assert (entry["by"]["sub"], entry["changes"]) == (agent.sub, result["changes"])
    assert entry["fields"] == ["content", "metadata"]
    assert body(agent, revision=1) == GUIDE
    assert_consistent_tree(agent.tenant)


@pytest.mark.usefixtures("guide")
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (replace("Ferns", "x"), "edits.1.replace"),
        (replace("Moss", "x"), "edits.1.replace"),
        ({"section": {"heading": ["Soil"], "body": "x"}}, "edits.1.section"),
    ],
)
def test_all_edits_or_none(agent: DocumentAgent, wrong: dict[str, Any], field: str) -> None:
    error = expect_error(Conflict, "NO_SINGLE_MATCH", edit, agent, {"append": "x"}, wrong, {"metadata": {"x": 1}})
    assert error.details["field"] == field
    assert error.message.startswith(f"{field}: ")
    assert (body(agent), agent.get("guide")["revision"]) == (GUIDE, 1)
    assert len(agent.history("guide")) == 1


@pytest.mark.usefixtures("guide")
@pytest.mark.parametrize(
    ("edits", "field"),
    [
        ([], "edits"),
        ([{}], "edits.0"),
        ([{"append": "x", "prepend": "x"}], "edits.0"),
        ([{"append": None}], "edits.0"),
        ([{"append": ""}], "edits.0.append"),
        ([{"insert": "x"}], "edits.0.insert"),
        ([replace("", "x")], "edits.0.replace.old"),
        ([replace("x", "y", count=0)], "edits.0.replace.count"),
        ([{"section": {"heading": [], "body": "x"}}], "edits.0.section.heading"),
        ([{"metadata": {}}], "edits.0.metadata"),
        ([{"metadata": {"tags": "x"}}], "edits.0.metadata"),
        ([{"append": "x"}, {"metadata": {"x": "x" * 2**16}}], "edits.1.metadata"),
        ([{"restore_revision": 1}, {"append": "x"}], "edits"),
        ([{"append": "x"}] * 51, "edits"),
    ],
)
def test_invalid_edits(agent: DocumentAgent, edits: list[dict[str, Any]], field: str) -> None:
    error = expect_error(InvalidParams, "INVALID_PARAMS", edit, agent, *edits)
    assert error.details[0]["field"] == field
    assert agent.get("guide")["revision"] == 1


@pytest.mark.usefixtures("guide")
def test_stale_revision(agent: DocumentAgent) -> None:
    edit(agent, {"append": "x"}, last_known_revision=1)
    error = expect_error(Conflict, "CONFLICT", edit, agent, {"append": "y"}, last_known_revision=1)
    assert error.details["current_revision"] == 2
    assert body(agent) == f"{GUIDE}x"


def test_missing_documents(agent: DocumentAgent, guide: str) -> None:
    agent("delete_document", document_id=guide)
    expect_error(NotFound, "NOT_FOUND", edit, agent, {"append": "x"})
    expect_error(NotFound, "NOT_FOUND", agent, "edit_document", document_id="nowhere", edits=[{"append": "x"}])


@pytest.mark.usefixtures("guide")
def test_repeated_request(agent: DocumentAgent) -> None:
    first = edit(agent, {"append": "x"}, request_id="r")
    assert edit(agent, {"append": "x"}, request_id="r") == first | {"replayed": True}
    expect_error(Conflict, "IDEMPOTENCY_MISMATCH", edit, agent, {"append": "y"}, request_id="r")
    assert body(agent) == f"{GUIDE}x"


@pytest.mark.usefixtures("guide")
def test_earlier_revision_comes_back_as_a_new_one(agent: DocumentAgent) -> None:
    edit(agent, {"append": "x"}, {"metadata": {"title": "Moss"}})
    patch = {"is_human_readable": False, "content": {"mime_type": "text/plain", "body": "other"}}
    agent("update_document", document_id="guide", patch=patch)
    agent.create("shelf")
    agent.move("guide", "shelf")
    first = agent.get("guide", revision=1)
    result = edit(agent, {"restore_revision": 1})
    assert (result["revision"], result["changes"], result["parent_id"]) == (5, "restored revision 1", "shelf")
    document = agent.get("guide")
    for field in ("content", "metadata", "is_human_readable"):
        assert document[field] == first[field]
    assert agent.history("guide")[-1]["fields"] == ["content", "metadata", "is_human_readable"]
    expect_error(NotFound, "NOT_FOUND", edit, agent, {"restore_revision": 9})
    edit(agent, {"restore_revision": 4})
    assert body(agent) == "other", "as of a move, which changed no text"


def test_earlier_revision_of_a_large_text(agent: DocumentAgent) -> None:
    large = "".join(random.Random(1).choices(string.ascii_letters, k=200_000))
    agent.create("guide", body=large)
    edit(agent, {"append": "x"})
    assert body(agent) == f"{large}x"
    edit(agent, {"restore_revision": 1})
    assert body(agent) == large


def test_text_of_2_mib(agent: DocumentAgent) -> None:
    """The answer says how much is left before the limit is reached. Beyond it nothing changes."""
    agent.create("guide", body="ờ" * 600_000)
    assert edit(agent, {"append": "x" * 97_000})["changes"].endswith("; 200152 bytes are left of 2097152")
    error = expect_error(TooLarge, "TOO_LARGE", edit, agent, {"append": "x" * 200_153})
    assert error.details == {"limit": MAX_BODY_BYTES}
    edit(agent, {"append": "x" * 200_152})
    assert len(body(agent).encode()) == MAX_BODY_BYTES
    expect_error(TooLarge, "TOO_LARGE", edit, agent, {"append": "x"})
    edit(agent, replace("ờ" * 600_000, "y"), {"append": "y"})
    assert agent.get("guide")["revision"] == 4


@contextmanager
def another_process(*edits: dict[str, Any], agent: DocumentAgent) -> Iterator[None]:
    """Edit the document in another process, just before this one commits."""

    def act() -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(revisions, "_editing", NamedLocks())
            edit(agent, *edits)

    with another_caller(act, before="TransactWriteItems"):
        yield


@pytest.mark.usefixtures("guide")
def test_another_writer_in_between(agent: DocumentAgent) -> None:
    """The edit applies to the other's text, if its place is still the only one there."""
    with another_process({"append": "theirs "}, agent=agent):
        edit(agent, {"append": "mine"})
    assert body(agent) == f"{GUIDE}theirs mine"
    with another_process(replace("theirs", "mine"), agent=agent):
        expect_error(Conflict, "NO_SINGLE_MATCH", edit, agent, replace("mine", "x"))
    with another_process({"append": "x"}, agent=agent):
        expect_error(Conflict, "CONFLICT", edit, agent, {"append": "y"}, last_known_revision=4)
    assert body(agent) == f"{GUIDE}mine minex"
    with another_caller(lambda: agent("delete_document", document_id="guide"), before="TransactWriteItems"):
        expect_error(NotFound, "NOT_FOUND", edit, agent, {"append": "x"})


@pytest.mark.stress
@pytest.mark.parametrize("size", [(10, sized(3, full=1000)), (sized(100, full=1900), sized(2, full=5))])
@pytest.mark.parametrize("processes", [1, 8])
def test_concurrent_appends_are_all_kept(
    agent: DocumentAgent,
    monkeypatch: pytest.MonkeyPatch,
    size: tuple[int, int],
    processes: int,
    record_property: Any,
) -> None:
    """Appends by 8 writers to one document are all present, in the order of their acknowledgement."""
    if processes > 1:
        monkeypatch.setattr(revisions._editing, "of", lambda _: FairLock())
    writers, (kib, appends) = 8, size
    start = "".join(random.Random(1).choices(string.ascii_letters, k=kib * 1024 - writers * appends * 5))
    agent.create("guide", body=f"{start}\n")

    repeated: Counter[str] = Counter()

    def append(line: str) -> int:
        while True:
            with suppress(Conflict):
                return int(edit(agent, {"append": f"{line}\n"}, request_id=line)["revision"])
            repeated["appends"] += 1

    def write(writer: int) -> list[tuple[int, str]]:
        lines = [f"{writer}-{number}" for number in range(appends)]
        return [(append(line), line) for line in lines]

    with ThreadPoolExecutor(writers) as pool:
        acknowledged = [each for done in pool.map(write, range(writers)) for each in done]
    assert sorted(revision for revision, _ in acknowledged) == list(range(2, writers * appends + 2))
    assert body(agent).splitlines()[1:] == [line for _, line in sorted(acknowledged)]
    assert_consistent_tree(agent.tenant)
    record_property("load", f"{writers} writers x {appends:,} appends at {kib:,} KiB in {processes} processes")
    assert processes > 1 or not repeated, "threads of one process come in turn"
    record_property("outcome", f"{len(acknowledged):,} present, in order; 0 lost; {repeated.total()} sent again")


WORDS = st.sampled_from(["fern", "moss", "fern moss", "shade\n", "# A\n", "## B\n", "```\n", "e\u0301", "\r\n", "x"])
TEXTS = st.lists(WORDS, min_size=1, max_size=3).map("".join)
EDITS = st.one_of(
    st.builds(lambda text: {"append": text}, TEXTS),
    st.builds(lambda text: {"prepend": text}, TEXTS),
    st.builds(replace, WORDS, TEXTS),
    st.builds(lambda text: {"section": {"heading": ["A"], "body": text}}, TEXTS),
    st.builds(lambda key, value: {"metadata": {key: value}}, st.sampled_from("ab"), st.sampled_from([1, None])),
)


@pytest.mark.stress
@settings(max_examples=sized(6, full=300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.lists(EDITS, min_size=1, max_size=3), max_size=4), min_size=8, max_size=8))
def test_mixed_edits_equal_a_model(agent: DocumentAgent, plans: list[list[list[dict[str, Any]]]]) -> None:
    """Each revision that 8 writers make is what one writer after another makes of the text: never half a call."""
    document_id = uuid4().hex
    content = {"mime_type": "text/markdown", "body": "# A\n\nfern\n\n# B\n\nmoss\n"}
    agent("create_document", document_id=document_id, parent_id="root", content=content)

    refusals = set()

    def write(plan: list[list[dict[str, Any]]]) -> dict[int, list[dict[str, Any]]]:
        done = {}
        for edits in plan:
            try:
                done[agent("edit_document", document_id=document_id, edits=edits)["revision"]] = edits
            except KhoError as error:
                refusals.add(error.code)
        return done

    with ThreadPoolExecutor(8) as pool:
        acknowledged = {number: edits for done in pool.map(write, plans) for number, edits in done.items()}
    assert refusals <= {"NO_SINGLE_MATCH", "INVALID_PARAMS"}
    assert sorted(acknowledged) == list(range(2, len(acknowledged) + 2))
    text, metadata = content["body"], dict[str, Any]()
    for revision, edits in sorted(acknowledged.items()):
        for each in edits:
            text, metadata = model(text, metadata, each)
        document = agent.get(document_id, revision=revision)
        assert (document["content"]["body"], document["metadata"]) == (text, metadata)


def model(text: str, metadata: dict[str, Any], each: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Apply an edit that was accepted, in the simplest way."""
    if "append" in each:
        return text + each["append"], metadata
    if "prepend" in each:
        return each["prepend"] + text, metadata
    if "metadata" in each:
        merged = metadata | each["metadata"]
        return text, {name: value for name, value in merged.items() if value is not None}
    if "replace" in each:
        old, new = each["replace"]["old"], each["replace"]["new"]
        assert text.count(old) == 1, json.dumps([text, old])
        return text.replace(old, new), metadata
    return with_section(text, each["section"]["body"]), metadata


def with_section(text: str, new: str) -> str:
    """Put a text below the only heading "# A", with the blank lines that were around the old one."""
    lines = text.splitlines(keepends=True)
    is_code = False
    headings = []
    for number, line in enumerate(lines):
        if is_code:
            is_code = line.strip() != "```"
        elif line.startswith("```") and "`" not in line[3:]:
            is_code = True
        elif line.startswith("# "):
            headings.append(number)
    (first,) = [number for number in headings if lines[number].rstrip() == "# A"]
    end = next((number for number in headings if number > first), len(lines))
    old = lines[first + 1 : end]
    line_break = "\r\n" if lines[first].endswith("\r\n") else "\n"
    filled = [number for number, line in enumerate(old) if line.strip()]
    before, after = ([line_break], [line_break] * (end < len(lines)))
    if filled:
        before, after = old[: filled[0]], old[filled[-1] + 1 :]
    if not new.strip():
        before, new = [], ""
    elif not new.endswith("\n") and (end < len(lines) or text.endswith("\n")):
        new += line_break
    return "".join([*lines[: first + 1], *before, new, *after, *lines[end:]])
