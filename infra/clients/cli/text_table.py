"""Plain-text tables."""

from collections.abc import Iterable


def format_table(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Format the rows under their heading. Each column is as wide as its longest cell."""
    table = [heading, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)
