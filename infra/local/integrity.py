"""Checks of a data folder's database and index. Problems are reported at start with their remedy."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from infra.local.index_check import DATABASE, damaged_indexes, indexed_documents
from infra.local.search_engine.errors import FolderLocked
from shared.platform.config import ConfigurationError, config
from shared.platform.telemetry import logger
from shared.rpc.errors import KhoError
from shared.search.index import knowledge_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_REPORT: Final = "problems.json"


def start_checks(data: Path, *, embedded: bool) -> None:
    """Check the folder in the background: checking a database takes a second per GB."""
    (data / _REPORT).unlink(missing_ok=True)
    threading.Thread(target=_check, args=[data, embedded], name="checks", daemon=True).start()


def reported_problems(data: Path) -> list[str]:
    """Return the problems that the running server has found in its folder."""
    try:
        problems: list[str] = json.loads((data / _REPORT).read_text())
    except (OSError, ValueError):  # the checks have not ended
        return []
    return problems


def find_problems(data: Path, *, embedded: bool) -> list[str]:
    """Return the problems of a folder that no other process uses. `embedded`: its database is the engine's."""
    checks: list[Callable[[Path], str]] = [_damaged_database] if embedded else []
    if not config().qdrant_url:
        checks += [_unusable_index]
    return [problem for check in checks if (problem := check(data))]


def _check(data: Path, embedded: bool) -> None:  # noqa: FBT001 - the argument of a thread
    problems = find_problems(data, embedded=embedded)
    for problem in problems:
        logger.error("data folder", extra={"failure": problem})
        with suppress(OSError):
            print(f"Warning: {problem}", file=sys.stderr, flush=True)
    with suppress(OSError):
        (data / _REPORT).write_text(json.dumps(problems))


def _damaged_database(data: Path) -> str:
    """Describe the damage of the database, if there is any."""
    database = data / DATABASE
    try:
        with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True, timeout=5)) as connection:
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError:  # it is locked, or has ended with the server
        return ""
    except sqlite3.DatabaseError as error:
        result = str(error)
    if result == "ok":
        return ""
    reason = " ".join(result.split())
    return f"The database {database} is damaged ({reason}). End this server, and restore {data} from a backup."


def _unusable_index(data: Path) -> str:
    """Describe what searches miss, if an index cannot be opened or lacks documents."""
    if lost := damaged_indexes(data):
        folders = " and ".join(map(str, lost))
        return f"The index {folders} has lost its files: searches are refused. {_rebuild(data)}"
    folder = data / "passages"
    if not (folder / "shard").exists():
        return ""
    try:
        missing = indexed_documents(data) - knowledge_index().count_documents()
    except KhoError as error:
        return f"The index {folder} cannot be used: {error.message} {error.guidance}"
    except (ConfigurationError, FolderLocked) as error:
        return f"The index {folder} cannot be used: {error}."
    return f"The index {folder} lacks {missing} documents: searches miss them. {_rebuild(data)}" if missing > 0 else ""


def _rebuild(data: Path) -> str:
    return f"End this server, and run: kho reindex --data {shlex.quote(str(data))}"
