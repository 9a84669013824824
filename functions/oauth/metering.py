"""Metering of OAuth's endpoints: a request counts as a stranger's if it presents no valid client, code or token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.access.oauth.clients import OAuthClients
from shared.access.oauth.errors import OAuthError
from shared.access.oauth.grants import Grants
from shared.access.rate_limits import rate_limits
from shared.access.source_address import source_address
from shared.aws.dynamodb import Table
from shared.platform.config import config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.http_events import HttpRequest
    from shared.access.oauth.clients import OAuthClient
    from shared.access.rate_limits import SignInRequest


def admit_stranger(request: HttpRequest, kind: SignInRequest = "sign-in requests") -> None:
    """Count a request that presents nothing valid. Raise TooManyRequests if its address, or all, made too many."""
    rate_limits().require_sign_in_capacity(source_address(request.source_ip, request.headers), kind)


def authenticated_client(request: HttpRequest, form: Mapping[str, str]) -> OAuthClient:
    """Return the client that sends this form. Raise OAuthError if it does not prove to be one."""
    clients = OAuthClients(Table(config().access_table), config().public_url)
    try:
        return clients.authenticate(form, request.headers.get("authorization", ""))
    except OAuthError:
        admit_stranger(request)
        raise


def metered_grants(request: HttpRequest) -> Grants:
    """Return the grants for a request, which counts for the grant of its code or token, or as a stranger's."""

    def admit(grant: str | None) -> None:
        if grant is None:
            admit_stranger(request)
        else:
            rate_limits().require_grant_capacity(grant)

    return Grants(Table(config().access_table), admit=admit)
