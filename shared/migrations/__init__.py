"""Migrations of the tables' items. One module a step: `{table}_{format}_{subject}`, which leads to that format."""
