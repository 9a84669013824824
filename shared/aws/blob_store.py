"""Large texts in DynamoDB: compressed, and cut into parts that fit an item."""

import zlib
from collections.abc import Callable
from typing import Final

from shared.aws.dynamodb import Keys, Table, Write

_PART_BYTES: Final = 380 * 1024


def compress(text: str) -> bytes:
    """Return `text` as a blob."""
    return zlib.compress(text.encode("utf-8"))


def decompress(blob: bytes) -> str:
    """Return the text of a blob."""
    return zlib.decompress(blob).decode("utf-8")


class BlobStore:
    """The blobs of one table.

    `key` maps a blob's name to the partition key and the sort key prefix of its parts, which `digits` number.
    """

    def __init__(self, table: Table, key: Callable[..., tuple[str, str]], digits: int) -> None:
        self._table = table
        self._key = key
        self._digits = digits

    def write(self, blob: bytes, *name: str) -> None:
        """Store a blob. Write it before the item that names it."""
        pk, prefix = self._key(*name)
        for number, start in enumerate(range(0, len(blob), _PART_BYTES)):
            part = {"pk": pk, "sk": f"{prefix}{number:0{self._digits}}", "part": blob[start : start + _PART_BYTES]}
            self._table.write(Write("Put", part))

    def read(self, *name: str) -> str | None:
        """Return the text of a blob, or None if it does not exist."""
        pk, prefix = self._key(*name)
        pages = self._table.query(pk, Keys.beginning(prefix))
        blob = b"".join(bytes(item["part"]) for page in pages for item in page)
        return decompress(blob) if blob else None

    def delete(self, *name: str) -> None:
        """Delete a blob."""
        pk, prefix = self._key(*name)
        self._table.delete_range(pk, Keys.beginning(prefix))
