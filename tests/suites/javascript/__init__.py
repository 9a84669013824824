"""Formatter, linter, types, and unit tests of the console's JavaScript."""
