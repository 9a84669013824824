"""Markdown rendering of tool results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from shared.knowledge.models import DocumentFailure, FileNote, StoredDocument
    from shared.knowledge.query_responses import QueryResults
    from shared.knowledge.responses import (
        CollectionsResult,
        DocumentPage,
        IngestionProgress,
        IngestionResult,
        ProjectsResult,
        Removal,
    )

_SHOWN_LINES: Final = 50


def render_query_results(results: QueryResults) -> str:
    """Render passages with their sources. Passages are quoted, so that none can pass for a heading of the result."""
    parts = [f"## {len(results.results)} result{'' if len(results.results) == 1 else 's'}"]
    for number, each in enumerate(results.results, start=1):
        where = f" — {_inline(each.header_path)}" if each.header_path else ""
        parts.append(
            f"### {number}. {_inline(each.metadata.document_title)}{where}\n\n"
            f"**{each.relevance_label}** ({each.relevance_score:.2f}) · source: {_code(each.source_document)} "
            f"· chunk {each.metadata.chunk_sequence_id}\n\n{quote(each.content)}"
        )
    refinement = results.query_refinement
    if refinement.status != "optimal" or not results.results:
        parts.append(f"**Query {refinement.status.replace('_', ' ')}**: {refinement.message}")
    return "\n\n".join(parts)


def render_collections(done: CollectionsResult) -> str:
    """Render the message, a table of collections, and a table of documents."""
    parts = [done.message]
    collections = done.collections if done.collections is not None else [done.collection] if done.collection else []
    if collections:
        rows = [
            (one.name, one.type, one.documents, one.chunks, ", ".join(one.projects), one.model) for one in collections
        ]
        parts.append(_table(("collection", "type", "documents", "chunks", "projects", "model"), rows))
    return "\n\n".join([*parts, *_document_page(done.documents or [], done.next_cursor)])


def render_documents(page: DocumentPage) -> str:
    """Render a table of documents."""
    return "\n\n".join(_document_page(page.documents, page.next_cursor)) or "No documents."


def render_removal(done: Removal) -> str:
    """Render the message."""
    return _inline(done.message)


def _document_page(documents: Sequence[StoredDocument], next_cursor: str | None) -> list[str]:
    rows = [(each.path, each.title, each.chunks, each.updated_at) for each in documents]
    table = [_table(("document", "title", "chunks", "updated"), rows)] if rows else []
    more = [f"There are more: call again with cursor {_code(next_cursor)}."] if next_cursor else []
    return table + more


def render_projects(done: ProjectsResult) -> str:
    """Render the message and a table of projects."""
    projects = done.projects if done.projects is not None else [done.project] if done.project else []
    rows = [(each.name, ", ".join(each.collections), ", ".join(each.searched)) for each in projects]
    table = [_table(("project", "collections", "searched by default"), rows)] if rows else []
    return "\n\n".join([done.message, *table])


def render_ingestion_result(done: IngestionResult) -> str:
    """Render the outcome of the documents, or the job id."""
    parts = [f"**{_inline(done.collection)}**: {done.message}"]
    if done.job_id:
        parts.append(f"job_id: {_code(done.job_id)}")
    if done.pending:
        parts.append(f"{done.pending} are stored and become searchable when the index is available again.")
    return "\n\n".join([*parts, *_failures(done.failed or []), *_notes(done.notes or [])])


def render_progress(progress: IngestionProgress) -> str:
    """Render the progress of a job."""
    head = f"**{progress.status}**: {progress.processed} of {progress.total} documents, collection "
    return "\n\n".join(
        [
            f"{head}{_code(progress.collection)}. {progress.message}",
            *_failures(progress.failed),
            *_notes(progress.notes),
        ]
    )


def _failures(failed: Sequence[DocumentFailure]) -> list[str]:
    return _listing("Left out", [(each.path, each.reason) for each in failed])


def _notes(notes: Sequence[FileNote]) -> list[str]:
    return _listing("Notes", [(each.path, each.note) for each in notes])


def _listing(title: str, lines: Sequence[tuple[str, str]]) -> list[str]:
    if not lines:
        return []
    shown = [f"- {_code(path)}: {_inline(text)}" for path, text in lines[:_SHOWN_LINES]]
    more = [f"- and {len(lines) - _SHOWN_LINES} more"] if len(lines) > _SHOWN_LINES else []
    return [f"{title}:\n\n" + "\n".join(shown + more)]


def quote(text: str) -> str:
    """Render text as a Markdown block quotation."""
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    cells = ([_inline(str(cell)).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _inline(text: str) -> str:
    return " ".join(text.split())


def _code(text: str) -> str:
    return f"`{_inline(text).replace('`', chr(39))}`"
