"""Stock boards: each is identified by the pair of its hardware address and its Client-Id.

The address is public: it is in every frame that the board sends. So the Client-Id, a random UUID that the board makes
at its first start, is a credential. Only hashes of the pair are stored, and a part of one is in the device's id.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Final

from shared.rpc.errors import FieldProblem, InvalidParams

_ADDRESS: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII)
_CLIENT_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_ID_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Board:
    """A board that checks in."""

    device_id: str
    """Its id as a device: the address, and a part of the hash."""
    pair_hash: str = field(repr=False)

    @classmethod
    def identify(cls, address: str, client_id: str) -> Board:
        """Return the board with this hardware address and Client-Id. Raise InvalidParams if one is malformed."""
        address = address.lower()
        if not _ADDRESS.fullmatch(address):
            raise InvalidParams(FieldProblem(field="Device-Id", message="must be the board's hardware address"))
        if not _CLIENT_ID.fullmatch(client_id):
            raise InvalidParams(FieldProblem(field="Client-Id", message="must be the board's UUID"))
        pair_hash = hashlib.sha256(f"board#{address}#{client_id}".encode()).hexdigest()
        return cls(f"{address.replace(':', '')}-{pair_hash[:_ID_DIGITS]}", pair_hash)
