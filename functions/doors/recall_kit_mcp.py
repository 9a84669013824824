"""POST /mcp/recall-kit: MCP as at `/mcp`, for everyone: recall-kit's tools and prompts, and no credentials needed."""

from __future__ import annotations

from functools import cache
from typing import Any

from doors.dialects import RECALL_KIT
from doors.mcp import answer
from doors.mcp_server import server_of
from doors.mcp_transport import Transport
from shared.rpc.offers import offers


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one MCP message."""
    return answer(event, _transport(), open_to_all=True)


@cache
def _transport() -> Transport:
    return Transport(server_of(offers().of(RECALL_KIT)))
