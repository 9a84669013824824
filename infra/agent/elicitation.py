"""Asking the person at an editor, however the protocol's revision does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fastmcp.server.elicitation import AcceptedElicitation
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from fastmcp import Context

_CONFIRMATION: Final = "confirm"
_CONFIRMED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {_CONFIRMATION: {"type": "boolean", "title": "Delete it"}},
    "required": [_CONFIRMATION],
}


async def elicit_confirmation(ctx: Context, question: str) -> bool | InputRequiredResult:
    """Whether the person says yes; or, in the newest revision, the question that the client is to come back with."""
    if not is_modern(ctx):
        try:
            said = await ctx.elicit(question, bool)
        except MCPError:
            return False  # the client cannot ask
        return isinstance(said, AcceptedElicitation) and said.data is True
    answers = ctx.input_responses
    if not answers or _CONFIRMATION not in answers:
        form = ElicitRequestFormParams(mode="form", message=question, requested_schema=_CONFIRMED)
        return InputRequiredResult(
            result_type="input_required",
            input_requests={_CONFIRMATION: ElicitRequest(method="elicitation/create", params=form)},
        )
    answer = answers[_CONFIRMATION]
    return isinstance(answer, ElicitResult) and answer.action == "accept" and _is_accepted(answer.content)


def is_modern(ctx: Context | None) -> bool:
    """Whether the client speaks the revision that keeps JSON-RPC's own codes to itself, and asks by results."""
    asked = ctx.request_context if ctx else None
    return bool(asked and asked.protocol_version in MODERN_PROTOCOL_VERSIONS)


def _is_accepted(content: dict[str, Any] | None) -> bool:
    return bool(content and content.get(_CONFIRMATION) is True)
