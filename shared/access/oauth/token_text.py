"""Authorization codes, access tokens and refresh tokens as texts.

A text names its tenant and its grant, so that its item is read by key and every key begins with the tenant. The rest
is 256 random bits. Only the hash of the text is stored.
"""

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final, Literal

from shared.rpc.caller import TENANT_ID

TokenKind = Literal["code", "access", "refresh"]

ACCESS_PREFIX: Final = "khoa_"
_PREFIXES: Final[dict[TokenKind, str]] = {"code": "khoc_", "access": ACCESS_PREFIX, "refresh": "khor_"}
_TEXT: Final = re.compile(r"(kho[acr]_)([A-Za-z0-9_-]{2,171})\.([0-9a-f]{16})\.[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenReference:
    """The tenant and grant that a text names, and its hash."""

    tenant_id: str
    grant_id: str
    hash: str


def new_token(kind: TokenKind, tenant_id: str, grant_id: str) -> str:
    """Return the text of a new token."""
    tenant = base64.urlsafe_b64encode(tenant_id.encode()).decode().rstrip("=")
    return f"{_PREFIXES[kind]}{tenant}.{grant_id}.{secrets.token_urlsafe(32)}"


def read_token(kind: TokenKind, text: str) -> TokenReference | None:
    """Return what a text of this kind names, or None if it is none."""
    parts = _TEXT.fullmatch(text)
    if parts is None or parts[1] != _PREFIXES[kind]:
        return None
    try:
        tenant_id = base64.urlsafe_b64decode(parts[2] + "=" * (-len(parts[2]) % 4)).decode("ascii")
    except ValueError:
        return None
    return TokenReference(tenant_id, parts[3], hash_of(text)) if re.fullmatch(TENANT_ID, tenant_id) else None


def hash_of(text: str) -> str:
    """Return the hash of a random text. It is long, so a plain hash can be neither reversed nor guessed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
