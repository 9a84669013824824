"""The texts of documents: compressed, in parts that an item can hold, written before the item that names them."""

from __future__ import annotations

import secrets
import zlib
from typing import TYPE_CHECKING, Final

from shared.dynamodb import Keys, Write
from shared.knowledge import keys

if TYPE_CHECKING:
    from shared.dynamodb import Table

_PART_BYTES: Final = 380 * 1024


class TextStore:
    """The texts of one collection's documents."""

    def __init__(self, table: Table, tenant_id: str, collection_id: str) -> None:
        self._table = table
        self._partition = keys.texts(tenant_id, collection_id)

    def keep(self, path: str, text: str) -> str:
        """Store `text` by itself, whoever else stores the same; the id under which it is read again."""
        data = zlib.compress(text.encode("utf-8"))
        text_id = secrets.token_hex(8)
        for number, start in enumerate(range(0, len(data), _PART_BYTES)):
            part = {"pk": self._partition, "sk": f"{keys.text(path, text_id)}{number:04d}"}
            self._table.write(Write("Put", part | {"part": data[start : start + _PART_BYTES]}))
        return text_id

    def read(self, path: str, text_id: str) -> str | None:
        """The text that was stored, unless it is gone meanwhile."""
        pages = self._table.query(self._partition, Keys.beginning(keys.text(path, text_id)))
        data = b"".join(bytes(item["part"]) for page in pages for item in page)
        return zlib.decompress(data).decode("utf-8") if data else None

    def delete(self, path: str, text_id: str) -> None:
        """Forget a text."""
        for page in self._table.query(self._partition, Keys.beginning(keys.text(path, text_id))):
            self._table.delete_all((item["pk"], item["sk"]) for item in page)
