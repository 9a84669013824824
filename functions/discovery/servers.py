"""GET /servers and /servers/{server_name}/capabilities: the servers and what they can do."""

from http import HTTPStatus

from api.deployment import lambda_function
from api.http_events import HttpRequest, HttpResponse, endpoint
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import NotFound
from shared.rpc.strict_json import compact, encodable


@lambda_function(routes=("GET /servers", "GET /servers/{server_name}/capabilities"))
@endpoint("discovery/servers")
def handler(request: HttpRequest) -> HttpResponse:
    """List the servers, or one server's capabilities."""
    name = request.path_parameters.get("server_name")
    if name is None:
        servers = [{"name": each.name, "capabilities": each.capabilities()} for each in catalogue().servers.values()]
        return HttpResponse(HTTPStatus.OK, compact({"servers": servers}))
    server = catalogue().servers.get(name)
    if server is None:
        raise NotFound(
            f"Unknown server: {encodable(name)}",
            details={"server_name": encodable(name)},
            guidance=f"The servers are: {', '.join(catalogue().servers)}.",
        )
    return HttpResponse(HTTPStatus.OK, compact({"server_name": name, "capabilities": server.capabilities()}))
