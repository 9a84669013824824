"""Errors in OAuth's own format: a code of RFC 6749, 7591 or 8707 and a description."""

from typing import Literal

ErrorCode = Literal[
    "access_denied",
    "invalid_client",
    "invalid_client_metadata",
    "invalid_grant",
    "invalid_redirect_uri",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "server_error",
    "temporarily_unavailable",
    "unsupported_grant_type",
    "unsupported_response_type",
]


class OAuthError(Exception):
    """A refusal of a request to an OAuth endpoint."""

    def __init__(self, code: ErrorCode, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
