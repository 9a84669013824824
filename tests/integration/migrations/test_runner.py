"""The runner of migrations: once, again after a kill, and next to another one."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from shared.aws.dynamodb import Keys, Table, Write
from shared.documents import keys
from shared.migrations.formats import FORMAT_KEY, TABLES, current_format, table_name
from shared.migrations.runner import migrate
from shared.platform.config import config
from shared.platform.formats import DataTooNew
from shared.platform.version import VERSION
from tests.helpers.document_agent import assert_consistent_tree
from tests.helpers.dynamodb_requests import intercept_requests
from tests.helpers.interference import another_caller
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from tests.helpers.document_agent import DocumentAgent

UPGRADING = Path(__file__).parents[3] / "docs" / "upgrading.md"
STOPPING_MIGRATOR = """
import sys
from shared.migrations.runner import migrate

def wait(line):
    print(line, flush=True)
    sys.stdin.readline()

migrate(wait, page=3)
"""


def recorded(table: str) -> dict[str, Any]:
    """Return the format item of a table without its key."""
    item = Table(table_name(table)).get(*FORMAT_KEY) or {}
    return {name: value for name, value in item.items() if name not in ("pk", "sk")}


def entries(agent: DocumentAgent) -> int:
    return Table(config().documents_table).count(keys.deleted_documents(agent.tenant), Keys.after(" "))


def test_every_table_gets_the_format_of_this_program() -> None:
    """After a migration each table has its format and the program's version."""
    assert set(migrate()) == set(TABLES)
    for table in TABLES:
        assert recorded(table) == {"format": current_format(table), "program": VERSION}


def test_second_run_is_one_read() -> None:
    """A run that has nothing to do sends one request."""
    migrate()
    requests: Counter[str] = Counter()
    with intercept_requests(lambda operation, _: requests.update([operation])):
        assert migrate() == {}
    assert requests == {"BatchGetItem": 1}


def test_killed_run_is_resumed_where_it_was(agent: DocumentAgent, deleted: list[str]) -> None:
    """A migrator that is killed leaves its position, from which the next run ends the work."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", STOPPING_MIGRATOR], stdin=pipe, stdout=pipe, text=True) as migrator:
        assert migrator.stdin
        assert migrator.stdout
        while not 0 < entries(agent) < len(deleted):
            assert migrator.stdout.readline()
            migrator.stdin.write("\n")
            migrator.stdin.flush()
        migrator.kill()
    position = recorded("documents")["position"]
    starts = []

    def look(operation: str, params: Any) -> None:
        if operation == "Scan":
            starts.append(params.get("ExclusiveStartKey"))

    with intercept_requests(look):
        migrate()
    assert starts[0] == {name: {"S": value} for name, value in position.items()}
    assert entries(agent) == len(deleted)
    assert recorded("documents") == {"format": current_format("documents"), "program": VERSION}
    assert_consistent_tree(agent.tenant)


def test_two_runs_at_once_do_the_work_once(agent: DocumentAgent, deleted: list[str]) -> None:
    """Two migrators that begin together both end, and the data is as if one had run."""
    together = threading.Barrier(2, timeout=CEILING_SECONDS)

    def run() -> None:
        together.wait()
        migrate(page=2)

    with ThreadPoolExecutor(2) as threads:
        for future in [threads.submit(run) for _ in range(2)]:
            future.result()
    assert entries(agent) == len(deleted)
    assert recorded("documents") == {"format": current_format("documents"), "program": VERSION}
    assert_consistent_tree(agent.tenant)


def test_slower_run_does_not_take_a_format_back(deleted: list[str]) -> None:
    """A run whose step another one has ended records neither a position nor a format."""
    lines: list[str] = []
    documents = TABLES.index("documents") + 1
    with another_caller(migrate, before="UpdateItem", at=documents):
        migrate(lines.append, page=2)
    assert any("ended by another process" in line for line in lines)
    assert recorded("documents") == {"format": current_format("documents"), "program": VERSION}


def test_newer_table_is_refused_by_name_before_anything_changes(agent: DocumentAgent, deleted: list[str]) -> None:
    """A program older than the data names the table, its format and the program it needs, and writes nothing."""
    pk, sk = FORMAT_KEY
    Table(config().memory_table).write(Write("Put", {"pk": pk, "sk": sk, "format": 7, "program": "9.1.0"}))
    with pytest.raises(DataTooNew) as caught:
        migrate()
    assert str(caught.value) == (
        f"The table kho-MemoryTable has format 7, and Kho {VERSION} reads formats up to 1: use Kho 9.1.0 or newer"
    )
    assert recorded("documents") == {}
    assert entries(agent) == 0


def test_run_needs_the_documented_permissions(deleted: list[str], store_actions: set[tuple[str, str]]) -> None:
    """An operator needs exactly the actions that docs/upgrading.md names."""
    migrate()
    of_all_tables = {action for action, table in store_actions if table != "DocumentsTable"}
    of_documents = {action for action, table in store_actions if table == "DocumentsTable"} - of_all_tables
    needs = re.search(
        r"`kho migrate --stack <name>` needs (.*?)\.\n-", UPGRADING.read_text(encoding="utf-8"), re.DOTALL
    )
    assert needs
    for_all, for_documents = (set(re.findall(r"dynamodb:\w+", part)) for part in needs[1].split("for all tables"))
    assert (for_all, for_documents) == (of_all_tables, of_documents)
