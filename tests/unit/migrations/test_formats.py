"""The formats of the tables, and the migrations that lead to them."""

from __future__ import annotations

import importlib

from infra.clients.cli.target import short_name
from infra.local.template import load
from shared.migrations.formats import FIRST_FORMAT, TABLES, current_format, step_modules
from shared.migrations.migration import Migration


def test_every_table_of_the_template_has_a_format() -> None:
    assert sorted(map(short_name, load().tables)) == sorted(TABLES)


def test_migrations_lead_to_each_format_in_turn() -> None:
    """A table's migrations end at its current format without a gap, and each module has one migration."""
    for table in TABLES:
        numbers = sorted(number for name, number in step_modules() if name == table)
        assert numbers == list(range(current_format(table) - len(numbers) + 1, current_format(table) + 1))
        assert current_format(table) >= FIRST_FORMAT
    assert {table for table, _ in step_modules()} <= set(TABLES)
    for module in step_modules().values():
        assert isinstance(importlib.import_module(module).MIGRATION, Migration)
