"""Where an API key lies in the table.

    pk    sk    item
    keys  {id}  whose it is, and the SHA-256 of its secret

A key is looked up before anyone knows the tenant: this is the one table whose keys do not start from it. Keys are
few and their verification is cached, so one partition holds them all, to be read as a list.
"""

from __future__ import annotations

from typing import Final

PARTITION: Final = "keys"
