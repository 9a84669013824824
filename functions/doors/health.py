"""GET /health: that the system answers, and which servers it has."""

from __future__ import annotations

from http import HTTPStatus

from doors.http import Request, Response, door
from shared.rpc.catalogue import catalogue
from shared.rpc.text import compact


@door("health")
def handler(_request: Request) -> Response:
    """Answer that the system is healthy."""
    return Response(HTTPStatus.OK, compact({"status": "healthy", "servers": list(catalogue().servers)}))
