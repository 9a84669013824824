"""Values that clients may register with (RFC 7591)."""

from typing import Final

from shared.rpc.caller import ROLES

AUTH_METHODS: Final = ("none", "client_secret_post", "client_secret_basic")
GRANT_TYPES: Final = ("authorization_code", "refresh_token")
SCOPES: Final = (*ROLES, "offline_access")
"""A scope is a role. `offline_access` is accepted and adds nothing: a client's grant types decide on refresh tokens."""
