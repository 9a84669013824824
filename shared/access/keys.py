"""Keys of API keys in the table.

    pk    sk    item
    keys  {id}  tenant, role, name and the SHA-256 of the secret

A key is looked up before the tenant is known: this is the one table whose keys do not start with it. Keys are
few and their verification is cached, so one partition holds them all and can be read as a list.
"""

from typing import Final

PARTITION: Final = "keys"
