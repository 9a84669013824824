"""What the command line shows: tables and passages for people, JSON for scripts."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.markdown import Markdown
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from infra.research.backend import Refused

_out = Console()
_err = Console(stderr=True)

_AT_A_PROMPT: Final = {
    "COLLECTION_NOT_FOUND": "'research-agent collections list' shows those that exist; 'collections create' makes one.",
    "COLLECTION_EXISTS": "Use the one there is, or another name; 'research-agent collections info' describes it.",
    "CONFIGURATION_NO_PROJECT": "'research-agent projects list' shows those that exist; 'projects create' makes one.",
    "CONFIGURATION_PROJECT_EXISTS": "Use the one there is, or another name; 'research-agent projects info' shows it.",
    "CONFIGURATION_NOT_LINKED": "Link them first: 'research-agent projects link'.",
    "INVALID_PARAMS": "Correct these and try again; nothing was changed.",
}
"""What to do, in commands where the tools' guidance names tools."""


def as_json(result: Any) -> None:
    """Print a result for scripts."""
    print(json.dumps(result, ensure_ascii=False, indent=2))


def query_results(result: dict[str, Any]) -> None:
    """Show passages, best first."""
    for number, each in enumerate(result["results"], start=1):
        heading = f"{number}. {each['metadata']['document_title']}"
        where = f"{each['source_document']}  {each['header_path']}".rstrip()
        score = f"{each['relevance_label']} ({each['relevance_score']:.2f})"
        _out.print(Panel(Markdown(each["content"]), title=Text(heading), subtitle=Text(f"{score} · {where}")))
    refinement = result["query_refinement"]
    if refinement["status"] != "optimal":
        _out.print(Text(f"{refinement['status'].replace('_', ' ')}: {refinement['message']}", style="yellow"))


def collections(result: dict[str, Any]) -> None:
    """Show collections, and the documents of one."""
    _out.print(Text(result["message"]))
    shown = result.get("collections") or [result[name] for name in ("collection",) if name in result]
    if shown:
        _table(("name", "type", "documents", "chunks", "projects", "created_at"), shown)
    if result.get("documents"):
        _table(("path", "title", "chunks", "updated_at"), result["documents"])


def projects(result: dict[str, Any]) -> None:
    """Show projects."""
    _out.print(Text(result["message"]))
    shown = result.get("projects") or [result[name] for name in ("project",) if name in result]
    if shown:
        _table(("name", "collections", "defaults", "updated_at"), shown)


def ingested(result: dict[str, Any]) -> None:
    """Show what has become of documents."""
    _out.print(Text(result["message"]))
    if result.get("failed"):
        _table(("path", "reason"), result["failed"])


def refused(error: Refused) -> None:
    """Show what went wrong, in which fields, and what to do."""
    _err.print(Text(f"research-agent: {error.message}", style="red"))
    details = error.data.get("details")
    for each in details if isinstance(details, list) else ():
        _err.print(Text(f"{each['field']}: {each['message']}"))
    guidance = _AT_A_PROMPT.get(str(error.data.get("code")), error.data.get("guidance"))
    if guidance:
        _err.print(Text(str(guidance)))


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on the terminal; nothing where nobody looks."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_err, transient=True, disable=quiet or not _err.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def told(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=escape(name[-40:]))

        yield told


def _table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    table = Table(*(column.replace("_", " ") for column in columns))
    for row in rows:
        table.add_row(*(Text(_cell(row[column])) for column in columns))
    _out.print(table)


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
