"""Keys of the access table, and of token buckets and failed attempts in the limits table.

    pk                         sk              item
    keys                       {id}            API key: tenant, role, name and the SHA-256 of the secret
    {tenant}#grants            {id}            OAuth grant: client, owner, role, resource and the hash of its code
    {tenant}#grant#{id}        access#{hash}   access token: role, expiry
    {tenant}#grant#{id}        refresh#{hash}  refresh token: idle expiry, time of use
    #client#{id}               client          registered OAuth client
    #authorization#{hash}      request         authorization request under way, until a person has decided on it
    #sign_in#{hash}            sign_in         visit to the identity provider: its request, and a random number
    bucket#{hash}              bucket          the time at which the token bucket is full again; the hash of its name
    attempts#{hash}            attempts        the times of a tenant's failed attempts in the last hour, likewise
    delivery#{hash}            attempts        the failed attempts at a stream record (shared/aws/delivery_attempts.py)

An API key is looked up before the tenant is known, as are clients and requests: their keys begin with no tenant's name.
API keys are few and their verification is cached, so one partition holds them all and can be read as a list.
"""

import hashlib
from typing import Final

PARTITION: Final = "keys"
GRANTS: Final = "#grants"
"""The end of the names of partitions with grants."""


def bucket(name: str) -> tuple[str, str]:
    """Return the key of a token bucket."""
    return f"bucket#{_hash(name)}", "bucket"


def attempts(name: str) -> tuple[str, str]:
    """Return the key of a list of failed attempts."""
    return f"attempts#{_hash(name)}", "attempts"


def grants(tenant_id: str) -> str:
    """Return the partition of a tenant's grants."""
    return f"{tenant_id}{GRANTS}"


def grant_tokens(tenant_id: str, grant_id: str) -> str:
    """Return the partition of a grant's tokens."""
    return f"{tenant_id}#grant#{grant_id}"


def token(kind: str, token_hash: str) -> str:
    """Return the sort key of a token."""
    return f"{kind}#{token_hash}"


def oauth_client(client_id: str) -> tuple[str, str]:
    """Return the key of a registered client."""
    return f"#client#{client_id}", "client"


def authorization(handle_hash: str) -> tuple[str, str]:
    """Return the key of an authorization request."""
    return f"#authorization#{handle_hash}", "request"


def sign_in(state_hash: str) -> tuple[str, str]:
    """Return the key of a visit to the identity provider."""
    return f"#sign_in#{state_hash}", "sign_in"


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
