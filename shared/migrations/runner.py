"""The runner of migrations: it brings the tables to this program's formats, page by page.

After each page, the table's format item gets the position from which another run continues. Several runs at the same
time repeat each other's pages, which changes nothing: a migration is idempotent, and a format only rises.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import ConditionFailed, Table, Write, read_from_tables
from shared.migrations.formats import FORMAT_KEY, TABLES, current_format, step_modules, table_name
from shared.platform.formats import require_known_format
from shared.platform.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.aws.dynamodb import Item
    from shared.migrations.migration import Migration

_PAGE: Final = 1_000
"""The items that a request reads at most. It also ends at 1 MB."""


def migrate(report: Callable[[str], object] = lambda _line: None, *, page: int = _PAGE) -> dict[str, int]:
    """Bring every table to this program's format, and report progress. Return the items changed by table.

    Change nothing if a table is newer than this program. If all tables are current, one request finds that out.
    """
    names = {table_name(table): table for table in TABLES}
    items = {names[name]: item for name, item in read_from_tables(names, *FORMAT_KEY).items()}
    formats = {
        table: require_known_format(f"The table {name}", items.get(table, {}), current_format(table))
        for name, table in names.items()
    }
    changes: dict[str, int] = {}
    for table, recorded in formats.items():
        position = items.get(table, {}).get("position")
        for number in range(recorded + 1, current_format(table) + 1):
            changes[table] = changes.get(table, 0) + _Step(table, number).run(report, position, page)
            position = None
    return changes


class _Step:
    """The step of a table to a format. A table's first format needs no migration."""

    def __init__(self, table: str, number: int) -> None:
        self._table = Table(table_name(table))
        self._number = number
        module = step_modules().get((table, number))
        self._migration: Migration | None = importlib.import_module(module).MIGRATION if module else None

    def run(self, report: Callable[[str], object], position: Item | None, page: int) -> int:
        """Change the items from `position` on, then record the format. Return the number of items changed."""
        subject = f"{self._table.name}, format {self._number}"
        changed = 0
        try:
            if self._migration:
                scan = self._table.scan_from(position, self._migration.condition, self._migration.values, page)
                for items, next_position in scan:
                    changed += self._migration.change(self._table, items) if items else 0
                    if next_position:
                        self._record("SET #position = :value", next_position)
                        report(f"{subject}: {self._migration.summary}, {changed} so far")
                if changed:
                    report(f"{subject}: {self._migration.summary}, {changed} in all")
            self._record("SET #format = :number, program = :value REMOVE #position", VERSION)
        except ConditionFailed:
            report(f"{subject}: ended by another process")
        return changed

    def _record(self, expression: str, value: object) -> None:
        """Update the table's format item, unless another run has ended this step."""
        pk, sk = FORMAT_KEY
        record = Write(
            "Update",
            {"pk": pk, "sk": sk},
            expression=expression,
            condition="attribute_not_exists(#format) OR #format < :number",
            values={":value": value, ":number": self._number},
            names={"#format": "format", "#position": "position"},
        )
        self._table.write(record)
