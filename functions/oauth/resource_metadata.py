"""GET /.well-known/oauth-protected-resource: where MCP clients get tokens for an MCP endpoint (RFC 9728)."""

from http import HTTPStatus

from api.deployment import PUBLIC_URL, lambda_function
from api.http_events import HttpRequest, HttpResponse, endpoint
from oauth.http import require_oauth
from shared.access.oauth.resources import MCP, METADATA, is_resource, scopes_of
from shared.platform.config import config
from shared.rpc.errors import NotFound
from shared.rpc.strict_json import compact


@lambda_function(
    PUBLIC_URL,
    timeout=10,
    routes=(
        f"GET {METADATA}",
        f"GET {METADATA}{MCP}",
        f"GET {METADATA}{MCP}/{{toolset}}",
        f"GET {METADATA}{MCP}/devices/{{device_id}}",
    ),
)
@endpoint("oauth/resource_metadata")
def handler(request: HttpRequest) -> HttpResponse:
    """Answer with the metadata of the resource whose path is behind the well-known one."""
    require_oauth()
    path = request.path.removeprefix(METADATA)
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
