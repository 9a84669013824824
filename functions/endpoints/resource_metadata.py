"""GET /.well-known/oauth-protected-resource: where MCP clients get credentials for `/mcp` (RFC 9728)."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from api.deployment import lambda_function
from api.http_events import HttpRequest, HttpResponse, endpoint
from shared.config import config
from shared.rpc.errors import NotFound
from shared.rpc.strict_json import compact

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
MCP: Final = "/mcp"
_HOST: Final = re.compile(r"[A-Za-z0-9._:\[\]-]+")


@lambda_function(
    timeout=10,
    routes={
        "Whole": f"GET {WELL_KNOWN}",
        "Mcp": f"GET {WELL_KNOWN}{MCP}",
    },
)
@endpoint("resource_metadata")
def handler(request: HttpRequest) -> HttpResponse:
    """Answer with the MCP endpoint's metadata, with or without its path behind the well-known one."""
    if config().auth == "open":
        raise NotFound("Nothing here needs credentials.", guidance="Call /mcp without credentials.")
    return HttpResponse(HTTPStatus.OK, compact(_metadata(request.headers)))


def challenge(headers: Mapping[str, str]) -> str:
    """Return the `WWW-Authenticate` header of the MCP endpoint, which points to the metadata."""
    error = 'error="invalid_token", ' if "authorization" in headers else ""
    return f'Bearer {error}resource_metadata="{_origin(headers)}{WELL_KNOWN}{MCP}"'


def _metadata(headers: Mapping[str, str]) -> dict[str, Any]:
    issuer = config().oidc_issuer
    return {
        "resource": _origin(headers) + MCP,
        "resource_name": "Kho",
        "bearer_methods_supported": ["header"],
        **({"authorization_servers": [issuer]} if issuer else {}),
    }


def _origin(headers: Mapping[str, str]) -> str:
    host = headers.get("host", "")
    scheme = "https" if headers.get("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{host if _HOST.fullmatch(host) else 'localhost'}"
