"""The output of the command line: tables and passages for people, JSON for scripts."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from infra.clients.agent.backend import BackendError


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Discard further output. A closed pipe does not change the exit code."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


out: Final = _Console()
_err: Final = _Console(stderr=True)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""All control characters except tab and newline, and marks that reorder text: a terminal would interpret them."""

_FRACTION: Final = re.compile(r"\.\d+(?=Z$)")
_WHOLE_COLUMNS: Final = {"type", "documents", "chunks", "created_at", "updated_at"}
"""Columns that are never wrapped. Names, paths and reasons take what is left of the terminal's width."""

_COMMAND_GUIDANCE: Final = {
    "COLLECTION_NOT_FOUND": "'research-agent collections list' shows those that exist; 'collections create' makes one.",
    "COLLECTION_EXISTS": "Use the existing one, or another name; 'research-agent collections info' describes it.",
    "CONFIGURATION_NO_PROJECT": "'research-agent projects list' shows those that exist; 'projects create' makes one.",
    "CONFIGURATION_PROJECT_EXISTS": "Use the existing one, or another name; 'research-agent projects info' shows it.",
    "CONFIGURATION_NOT_LINKED": "Link them first: 'research-agent projects link'.",
    "INVALID_PARAMS": "Correct these and try again; nothing was changed.",
}
"""Guidance in terms of commands. The methods' own guidance names tools."""


def escape_unencodable() -> None:
    """Print characters that the terminal's encoding lacks as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(result: Any) -> None:
    """Print a result for scripts."""
    text = json.dumps(result, ensure_ascii=out.options.ascii_only, indent=2)
    _write(_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def prompt_user(question: str) -> str:
    """Return a person's answer. The question goes to the standard error."""
    _err.print(_text(question), end="")
    return input()


def print_query_results(result: dict[str, Any]) -> None:
    """Print passages unchanged, best first."""
    for number, each in enumerate(result["results"], start=1):
        source = " · ".join(filter(None, (each["source_document"], each["header_path"])))
        out.print(_text(f"{number}. {each['metadata']['document_title']}", "bold"))
        out.print(_text(f"{each['relevance_label']} ({each['relevance_score']:.2f}) · {source}", "dim"))
        _write(f"{_visible(each['content'])}\n")
    refinement = result["query_refinement"]
    if refinement["status"] != "optimal":
        out.print(_text(f"{refinement['status'].replace('_', ' ')}: {refinement['message']}", "yellow"))


def print_collections(result: dict[str, Any]) -> None:
    """Print collections, and the documents of a single one."""
    out.print(_text(result["message"]))
    rows = result.get("collections") or [result[name] for name in ("collection",) if name in result]
    if rows:
        _table(("name", "type", "documents", "chunks", "projects", "created_at"), rows)
    if result.get("documents"):
        print_documents(result)


def print_documents(result: dict[str, Any]) -> None:
    """Print the documents of a collection."""
    if result["documents"]:
        _table(("path", "title", "chunks", "updated_at"), result["documents"])
    else:
        print_message({"message": "No documents."})


def print_message(result: dict[str, Any]) -> None:
    """Print what was done."""
    out.print(_text(result["message"]))


def print_evaluation(result: dict[str, Any]) -> None:
    """Print the means of an evaluation, and the queries that lose."""
    count, ndcg, recall = (result[name] for name in ("queries", "ndcg_at_10", "recall_at_10"))
    out.print(_text(f"{count} queries: nDCG@10 {ndcg:.3f}, recall@10 {recall:.3f}", "bold"))
    for each in result["losses"]:
        out.print(_text(f"{each['ndcg']:.2f} {each['query']}"))
        for path, rank in each["ranks"].items():
            out.print(_text(f"     {path}: {f'rank {rank}' if rank else 'not found'}", "dim"))
        out.print(_text(f"     first: {each['first'] or 'nothing'}", "dim"))


def print_projects(result: dict[str, Any]) -> None:
    """Print projects."""
    out.print(_text(result["message"]))
    rows = result.get("projects") or [result[name] for name in ("project",) if name in result]
    if rows:
        _table(("name", "collections", "defaults", "updated_at"), rows)


def print_ingestion(result: dict[str, Any]) -> None:
    """Print the outcome of an ingestion."""
    out.print(_text(result["message"]))
    if result.get("notes"):
        _table(("path", "note"), result["notes"])
    if result.get("failed"):
        _table(("path", "reason"), result["failed"])


def print_error(error: BackendError) -> None:
    """Print an error with its fields and guidance."""
    _err.print(_text(f"research-agent: {error.message}", "red"))
    details = error.data.get("details")
    for each in details if isinstance(details, list) else ():
        _err.print(_text(f"{each['field']}: {each['message']}"))
    guidance = _COMMAND_GUIDANCE.get(str(error.data.get("code")), error.data.get("guidance"))
    if guidance:
        _err.print(_text(str(guidance)))


@contextmanager
def progress_bar(*, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar, if the standard error is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_err, transient=True, disable=quiet or not _err.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def update(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=escape(_visible(name[-40:])))

        yield update


def _table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        is_whole = column in _WHOLE_COLUMNS
        width = max(len(_cell(row, column)) for row in rows) if is_whole else None
        table.add_column(column.replace("_", " "), overflow="fold", no_wrap=is_whole, min_width=width)
    for row in rows:
        table.add_row(*(_text(_cell(row, column)) for column in columns))
    out.print(table)


def _cell(row: dict[str, Any], column: str) -> str:
    value = row[column]
    if column.endswith("_at"):
        return _FRACTION.sub("", value)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _text(text: str, style: str = "") -> Text:
    return Text(_visible(text), style=style)


def _visible(text: str) -> str:
    return _CONTROL.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _write(text: str) -> None:
    """Write `text` unchanged, without rich's wrapping."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        out.on_broken_pipe()
