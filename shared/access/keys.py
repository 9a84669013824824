"""Keys of API keys in the access table, and of token buckets in the limits table.

    pk             sk      item
    keys           {id}    tenant, role, name and the SHA-256 of the secret
    bucket#{hash}  bucket  the time at which the token bucket is full again; the hash is that of its name

An API key is looked up before the tenant is known: this is the one table whose keys do not start with it. Keys are
few and their verification is cached, so one partition holds them all and can be read as a list.
"""

from typing import Final

PARTITION: Final = "keys"


def bucket(name_hash: str) -> tuple[str, str]:
    """Return the key of a token bucket."""
    return f"bucket#{name_hash}", "bucket"
