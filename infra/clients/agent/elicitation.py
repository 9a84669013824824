"""Elicitation: a confirmation by the editor's user, in either form of the protocol's revisions."""

from __future__ import annotations

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


async def elicit_confirmation(ctx: Context, question: str) -> bool | InputRequiredResult:
    """Return whether the user confirms.

    In the newest revision, a first call returns the question, and the client repeats the call with the answer.
    """
    if not ctx.request_context or is_handshake(ctx.request_context.protocol_version):
        try:
            response = await ctx.elicit(question, bool)
        except MCPError:
            return False  # the client does not support elicitation
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
