"""Bodies of any size up to 2 MiB: compressed, and cut into parts where an item could not hold them."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, Any, Final

from shared.documents import keys
from shared.dynamodb import Keys, Write

if TYPE_CHECKING:
    from shared.dynamodb import Item, Table

_INLINE_BYTES: Final = 64 * 1024
"""What is larger would weigh on a transaction, which costs twice, and on one partition."""
_PART_BYTES: Final = 380 * 1024


class BodyStore:
    """The bodies of one tenant's documents."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id

    def keep(self, text: str) -> dict[str, Any]:
        """The attributes that an item needs to hold `text`; parts of a large one are written now."""
        data = zlib.compress(text.encode("utf-8"))
        if len(data) <= _INLINE_BYTES:
            return {"body": data}
        # Under what they hold, parts need no cleaning up: a write that is tried again finds its own.
        digest = hashlib.sha256(data).hexdigest()
        partition = keys.body(self._tenant_id, digest)
        parts = [data[start : start + _PART_BYTES] for start in range(0, len(data), _PART_BYTES)]
        for number, part in enumerate(parts):
            self._table.write(Write("Put", {"pk": partition, "sk": keys.part(number), "part": part}))
        return {"body_digest": digest}

    def text(self, item: Item) -> str:
        """The text that an item holds."""
        return zlib.decompress(self._data(item)).decode("utf-8")

    def _data(self, item: Item) -> bytes:
        if "body" in item:
            return bytes(item["body"])
        partition = keys.body(self._tenant_id, item["body_digest"])
        pages = self._table.query(partition, Keys.beginning(keys.PART))
        return b"".join(bytes(part["part"]) for page in pages for part in page)
