"""Elicitation: a confirmation by the editor's user, in either form of the protocol's revisions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from fastmcp.server.elicitation import AcceptedElicitation
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from api.mcp_errors import is_handshake

if TYPE_CHECKING:
    from fastmcp import Context

_CONFIRMATION: Final = "confirm"
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {_CONFIRMATION: {"type": "boolean", "title": "Delete it"}},
    "required": [_CONFIRMATION],
}


def can_ask(ctx: Context) -> bool:
    """Return True if the client has declared that it can ask its user."""
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


async def elicit_confirmation(ctx: Context, question: str, seconds: float) -> bool | InputRequiredResult:
    """Return whether the user confirms within `seconds`.

    In the newest revision, a first call returns the question, and the client repeats the call with the answer.
    """
    if not ctx.request_context or is_handshake(ctx.request_context.protocol_version):
        try:
            async with asyncio.timeout(seconds):
                response = await ctx.elicit(question, bool)
        except (MCPError, TimeoutError):
            return False
        return isinstance(response, AcceptedElicitation) and response.data is True
    responses = ctx.input_responses
    if not responses or _CONFIRMATION not in responses:
        form = ElicitRequestFormParams(mode="form", message=question, requested_schema=_SCHEMA)
        return InputRequiredResult(
            result_type="input_required",
            input_requests={_CONFIRMATION: ElicitRequest(method="elicitation/create", params=form)},
        )
    answer = responses[_CONFIRMATION]
    accepted = isinstance(answer, ElicitResult) and answer.action == "accept" and answer.content
    return bool(accepted and accepted.get(_CONFIRMATION) is True)
