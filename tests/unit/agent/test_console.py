"""Terminal output of passages, names and errors: faithful, and without control sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.agent import console
from infra.agent.backend import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = "a\x1b]0;pwned\x07b\x9b31m"
VISIBLE = r"a\x1b]0;pwned\x07b\x9b31m"
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


def test_times_are_whole_in_narrow_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.out, "_width", 80)
    moment = "2026-11-19T05:17:34.123456Z"
    row = {"name": "a" * 64, "type": "fundamental", "documents": 12, "chunks": 345, "projects": ["x" * 64]}
    console.print_collections({"message": "1 collection.", "collections": [row | {"created_at": moment}]})
    printed = capsys.readouterr().out
    assert moment in printed
    assert "…" not in printed


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
    assert r"a\u001b]0;pwned\u0007b\u009b31m" in capsys.readouterr().out
