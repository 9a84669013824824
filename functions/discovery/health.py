"""GET /health: the health check, with the names of all servers."""

from http import HTTPStatus

from api.deployment import lambda_function
from api.http_events import HttpRequest, HttpResponse, endpoint
from shared.rpc.catalogue import catalogue
from shared.rpc.strict_json import compact


@lambda_function(routes=("GET /health",))
@endpoint("discovery/health")
def handler(_request: HttpRequest) -> HttpResponse:
    """Answer that the system is healthy."""
    return HttpResponse(HTTPStatus.OK, compact({"status": "healthy", "servers": list(catalogue().servers)}))
