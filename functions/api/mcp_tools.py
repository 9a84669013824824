"""MCP's tools: what a caller may call, and the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from api.error_formats import RECALL_KIT
from api.http_events import MAX_ANSWER_BYTES, event_bytes
from api.mcp_errors import is_handshake, protocol_error, recall_kit_error, tool_error
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import FieldProblem, InvalidParams, KhoError, TooLarge
from shared.rpc.invoke import invoke_with_text
from shared.rpc.strict_json import compact, encodable

if TYPE_CHECKING:
    from mcp_types import CallToolRequestParams, PaginatedRequestParams

    from api.mcp_transport import McpRequestContext
    from shared.rpc.mcp_catalog import McpToolEntry

_ENVELOPE_BYTES: Final = 4096
_SURELY_SMALL: Final = 256 * 1024
_ELSEWHERE: Final = "The result is in structuredContent alone: it is too long to be said twice."


class McpTools:
    """The tools that are offered, by their names."""

    def __init__(self, tools: list[McpToolEntry]) -> None:
        self._tools = {each.name: each for each in tools}
        # Seeds write some names with a slash, which models' interfaces do not take; whoever knows them may say so.
        self._spelt = {each.method.partition("/")[2]: each for each in tools if not each.by_name}

    def schema_of(self, name: str) -> dict[str, Any] | None:
        """What a tool takes."""
        tool = self._tools.get(name)
        return tool.described["inputSchema"] if tool else None

    def list_tools(self, params: PaginatedRequestParams, visit: McpRequestContext, _revision: str) -> dict[str, Any]:
        """The tools that the caller's role allows."""
        require_first_page(params)
        allowed = [each for each in self._tools.values() if each.anonymous or visit.caller.holds(each.role)]
        return {"tools": [each.described for each in allowed]}

    def call_tool(self, params: CallToolRequestParams, visit: McpRequestContext, revision: str) -> dict[str, Any]:
        """The result of a tool; its failure as the revision says it."""
        tool = self._tools.get(params.name) or self._spelt.get(params.name)
        if tool is None:
            said = f"'{encodable(params.name)}' is not a tool; tools/list names them"
            raise InvalidParams(FieldProblem(field="name", message=said))
        entry = catalogue().methods[tool.method]
        try:
            return _run(tool, entry.function, params.arguments or {}, visit)
        except KhoError as error:
            if entry.server == RECALL_KIT:
                return recall_kit_error(error)
            if is_handshake(revision):
                raise protocol_error(error, entry.server, revision) from None
            return tool_error(error)


def _run(tool: McpToolEntry, function: str, arguments: dict[str, Any], visit: McpRequestContext) -> dict[str, Any]:
    given = {"name": tool.name, "arguments": arguments} if tool.by_name else arguments
    result, text = invoke_with_text(function, tool.method, given, visit.caller, visit.correlation_id)
    if tool.by_name:
        return require_fitting(result)
    said = compact(result) if text is None else text
    if len(said) > _SURELY_SMALL and encoded_bytes(result) + encoded_bytes(said) > MAX_ANSWER_BYTES - _ENVELOPE_BYTES:
        said = _ELSEWHERE
    return require_fitting({"content": [{"type": "text", "text": said}], "structuredContent": result})


def require_first_page(params: PaginatedRequestParams) -> None:
    """Refuse a cursor where a list has one page only, and so gave none."""
    if params.cursor is not None:
        raise InvalidParams(FieldProblem(field="cursor", message="is not a cursor of this list, which has one page"))


def require_fitting(result: dict[str, Any]) -> dict[str, Any]:
    """`result`, unless it would not fit through the door."""
    if encoded_bytes(result) > MAX_ANSWER_BYTES - _ENVELOPE_BYTES:
        raise TooLarge("The answer would pass 6 MB.")
    return result


def encoded_bytes(value: Any) -> int:
    """What `value` costs in the door's answer, whose body the event carries as a string."""
    return event_bytes(compact(value))
