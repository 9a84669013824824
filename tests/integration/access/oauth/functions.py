"""OAuth's functions in this process."""

from __future__ import annotations

import base64
import importlib
from typing import TYPE_CHECKING

from shared.access.credentials import cached_verifier, verifier
from shared.access.rate_limits import rate_limits
from shared.aws.dynamodb import Table
from shared.platform.config import config
from tests.helpers.function_variables import variables_of
from tests.helpers.mcp_events import event
from tests.helpers.oauth_client import PUBLIC_URL, Answer

if TYPE_CHECKING:
    import pytest

_FUNCTIONS = {
    "/oauth/authorize": "oauth.authorize",
    "/oauth/sign-in": "oauth.sign_in",
    "/oauth/callback": "oauth.sign_in",
    "/oauth/token": "oauth.token",
    "/oauth/register": "oauth.register",
    "/oauth/revoke": "oauth.revoke",
    "/.well-known/oauth-authorization-server": "oauth.metadata",
}
_CACHES = (config, rate_limits, verifier, cached_verifier)


def reset_oauth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Require credentials at a public address, and empty the buckets that other tests have used."""
    monkeypatch.setenv("KHO_AUTH", "required")
    monkeypatch.setenv("KHO_PUBLIC_URL", PUBLIC_URL)
    forget_settings()
    table = Table(config().limits_table)
    for page in table.scan("bucket#"):
        table.delete_all((item["pk"], item["sk"]) for item in page)


def forget_settings() -> None:
    """Forget everything that functions cache."""
    for each in _CACHES:
        each.cache_clear()


def send(
    method: str, path: str, *, query: str = "", body: str = "", source: str = "127.0.0.1", **headers: str
) -> Answer:
    """Invoke the function of a route, for a caller at the address `source`."""
    gateway_event = event("", method, path)
    gateway_event["requestContext"]["http"]["sourceIp"] = source
    gateway_event["rawQueryString"] = query
    gateway_event["headers"] = {"host": "kho.example"} | headers
    # API Gateway encodes forms.
    gateway_event["body"], gateway_event["isBase64Encoded"] = base64.b64encode(body.encode()).decode(), True
    name = _FUNCTIONS.get(path, "oauth.resource_metadata" if path.startswith("/.well-known/") else "endpoints.mcp")
    handler = importlib.import_module(name).handler
    with variables_of(name.replace(".", "-")):
        response = handler(gateway_event, None)
    return Answer(response["statusCode"], response["headers"], response["body"])
