"""Terminal output of passages, names and errors: faithful, and without control sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.clients.agent import console
from infra.clients.agent.backend import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = "a\x1b]0;pwned\x07b\x9b31m\u202e"
VISIBLE = r"a\x1b]0;pwned\x07b\x9b31m\u202e"
PASSAGES = [
    "# a comment, no heading\n\tif x:\n        return  1  # **not** bold",
    "<div>markup</div>\n\n| a | b |",
    f"{'long ' * 60}line",
]


def _found(content: str, name: str = "code.py") -> dict[str, Any]:
    metadata = {"document_title": name, "content_type": "prose", "chunk_sequence_id": 1}
    passage = {"content": content, "relevance_score": 0.5, "relevance_label": "Relevant", "metadata": metadata}
    passage |= {"source_document": name, "header_path": name}
    return {"results": [passage], "query_refinement": {"status": "too_broad", "message": name}}


@pytest.mark.parametrize("passage", PASSAGES)
def test_passages_are_printed_verbatim(passage: str, capsys: pytest.CaptureFixture[str]) -> None:
    console.print_query_results(_found(passage))
    assert f"\n{passage}\n" in capsys.readouterr().out


def test_types_counts_and_times_are_whole_in_narrow_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.out, "_width", 80)
    row = {"name": "a" * 64, "type": "fundamental", "documents": 12_345, "chunks": 345_678, "projects": ["x" * 64]}
    row["created_at"] = "2026-11-19T05:17:34.123456Z"
    console.print_collections({"message": "2 collections.", "collections": [row, row | {"type": "project-specific"}]})
    printed = capsys.readouterr().out
    for whole in ("fundamental", "project-specific", "12345", "345678", "2026-11-19T05:17:34Z"):
        assert whole in printed
    assert "…" not in printed


def test_errors_are_printed_with_fields_and_guidance(capsys: pytest.CaptureFixture[str]) -> None:
    details = [{"field": "top_k", "message": "must be at most 20"}]
    console.print_error(BackendError(-32004, "Invalid query.", {"guidance": "Ask for fewer.", "details": details}))
    assert capsys.readouterr().err.splitlines() == [
        "research-agent: Invalid query.",
        "top_k: must be at most 20",
        "Ask for fewer.",
    ]


def test_guidance_names_commands_where_there_are_some(capsys: pytest.CaptureFixture[str]) -> None:
    guidance = {"code": "COLLECTION_NOT_FOUND", "guidance": "Call manage_collections with action list."}
    console.print_error(BackendError(-32002, "Collection not found: x", guidance))
    printed = capsys.readouterr().err
    assert "research-agent collections list" in printed
    assert "manage_collections" not in printed


SHOWN: list[tuple[Callable[[Any], None], Any]] = [
    (console.print_query_results, _found(HOSTILE, HOSTILE)),
    (console.print_ingestion, {"message": HOSTILE, "failed": [{"path": HOSTILE, "reason": HOSTILE}]}),
    (
        console.print_collections,
        {"message": HOSTILE, "documents": [dict.fromkeys(("path", "title", "chunks", "updated_at"), HOSTILE)]},
    ),
    (
        console.print_projects,
        {"message": HOSTILE, "project": {"name": HOSTILE, "collections": [HOSTILE], "defaults": [], "updated_at": ""}},
    ),
    (
        console.print_error,
        BackendError(-32003, HOSTILE, {"guidance": HOSTILE, "details": [{"field": HOSTILE, "message": HOSTILE}]}),
    ),
]


@pytest.mark.parametrize(("show", "what"), SHOWN)
def test_control_characters_are_escaped(
    show: Callable[[Any], None], what: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    show(what)
    output = "".join(capsys.readouterr())
    assert not {each for each in output if not each.isprintable()} - {"\n"}
    assert VISIBLE in output


def test_json_output_escapes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"title": HOSTILE})
    assert r"a\u001b]0;pwned\u0007b\u009b31m\u202e" in capsys.readouterr().out
