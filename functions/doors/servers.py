"""GET /servers and /servers/{server_name}/capabilities: the servers and what they can do."""

from __future__ import annotations

from http import HTTPStatus

from doors.http import Request, Response, door
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import NotFound
from shared.rpc.text import compact, encodable


@door("servers")
def handler(request: Request) -> Response:
    """List the servers, or tell one server's capabilities."""
    name = request.path_parameters.get("server_name")
    if name is None:
        servers = [{"name": each.name, "capabilities": each.capabilities()} for each in catalogue().servers.values()]
        return Response(HTTPStatus.OK, compact({"servers": servers}))
    server = catalogue().servers.get(name)
    if server is None:
        raise NotFound(
            f"Unknown server: {encodable(name)}",
            details={"server_name": encodable(name)},
            guidance=f"The servers are: {', '.join(catalogue().servers)}.",
        )
    return Response(HTTPStatus.OK, compact({"server_name": name, "capabilities": server.capabilities()}))
