"""GET /.well-known/oauth-protected-resource: where MCP clients get tokens for an MCP endpoint (RFC 9728)."""

from http import HTTPStatus
from typing import Final

from api.deployment import lambda_function
from api.http_events import HttpRequest, HttpResponse, endpoint
from api.oauth_http import require_oauth
from shared.access.oauth.resources import MCP, is_resource, scopes_of
from shared.config import config
from shared.rpc.errors import NotFound
from shared.rpc.strict_json import compact

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


@lambda_function(
    timeout=10,
    routes={
        "Whole": f"GET {WELL_KNOWN}",
        "Mcp": f"GET {WELL_KNOWN}{MCP}",
        "Toolset": f"GET {WELL_KNOWN}{MCP}/{{toolset}}",
        "Device": f"GET {WELL_KNOWN}{MCP}/devices/{{device_id}}",
    },
)
@endpoint("resource_metadata")
def handler(request: HttpRequest) -> HttpResponse:
    """Answer with the metadata of the resource whose path is behind the well-known one."""
    require_oauth()
    path = request.path.removeprefix(WELL_KNOWN)
    if not is_resource(path):
        raise NotFound("There is no MCP endpoint at this path.")
    public_url = config().public_url
    metadata = {
        "resource": public_url + path,
        "resource_name": "Kho",
        "authorization_servers": [public_url],
        "bearer_methods_supported": ["header"],
        "scopes_supported": scopes_of(path),
    }
    return HttpResponse(HTTPStatus.OK, compact(metadata))


def challenge(request: HttpRequest) -> str:
    """Return the `WWW-Authenticate` header of an MCP endpoint, which points to its metadata."""
    parameters = ['error="invalid_token"'] if "authorization" in request.headers else []
    if config().public_url:
        parameters.append(f'resource_metadata="{config().public_url}{WELL_KNOWN}{request.path}"')
    return f"Bearer {', '.join(parameters)}".rstrip()
