"""MCP tools: the list that a caller's role allows, and their calls."""

from typing import Any, Final

from api.http_events import MAX_ANSWER_BYTES, event_bytes
from api.mcp_errors import tool_failure, unknown_name, with_tool_names
from api.mcp_sdk import CallToolRequestParams, PaginatedRequestParams
from api.mcp_transport import McpRequestContext
from shared.rpc.catalogue import MethodEntry, catalogue
from shared.rpc.errors import FieldProblem, InvalidParams, KhoError, ParseError
from shared.rpc.mcp_catalog import McpToolEntry
from shared.rpc.strict_json import compact, parse

_ENVELOPE_BYTES: Final = 4096
_SURELY_SMALL: Final = 256 * 1024
_ONLY_STRUCTURED: Final = "The result is in structuredContent alone: it is too long to send twice."


class McpTools:
    """The tools of a catalog, by name."""

    def __init__(self, tools: list[McpToolEntry]) -> None:
        self._tools = {each.name: each for each in tools}
        # Some names have a slash, which models' interfaces do not take. Both spellings can be called.
        self._by_method_name = {each.method.partition("/")[2]: each for each in tools if not each.by_name}

    def schema_of(self, name: str) -> dict[str, Any] | None:
        """Return the tool's input schema, or None if there is no such tool."""
        tool = self._tools.get(name)
        return tool.described["inputSchema"] if tool else None

    def list_tools(self, params: PaginatedRequestParams, context: McpRequestContext, _revision: str) -> dict[str, Any]:
        """List the tools that the caller's role allows."""
        require_first_page(params)
        allowed = [each for each in self._tools.values() if each.anonymous or context.caller.holds(each.role)]
        return {"tools": [each.described for each in allowed]}

    def call_tool(self, params: CallToolRequestParams, context: McpRequestContext, _revision: str) -> dict[str, Any]:
        """Call a tool and return its result; so is its failure."""
        tool = self._tools.get(params.name) or self._by_method_name.get(params.name)
        if tool is None:
            raise unknown_name("tool", params.name)
        entry = catalogue().methods[tool.method]
        try:
            return _run(tool, entry, params.arguments or {}, context)
        except KhoError as error:
            return tool_failure(with_tool_names(error, entry.server), entry.server)


def _run(
    tool: McpToolEntry, entry: MethodEntry, arguments: dict[str, Any], context: McpRequestContext
) -> dict[str, Any]:
    if refused := sorted(arguments.keys() & set(tool.refused)):
        raise InvalidParams(*(FieldProblem(field=name, message="is not taken by this toolset") for name in refused))
    params = {"name": tool.name, "arguments": arguments} if tool.by_name else _with_defaults(tool, arguments)
    answer = context.invoke(entry, params, to_read=True)
    result: dict[str, Any] = answer["result"]
    if tool.returns_content:
        return with_structured_value(result)
    if tool.by_name:
        return result
    text = answer["text"] if "text" in answer else compact(result)
    if len(text) > _SURELY_SMALL and not _fit_together(result, text):
        text = _ONLY_STRUCTURED
    return {"content": [{"type": "text", "text": text}], "structuredContent": result}


def with_structured_value(result: dict[str, Any]) -> dict[str, Any]:
    """Return a device's result, with structured content for JSON that has another type than object.

    Some clients copy such a value there themselves, and then refuse it.
    """
    first: dict[str, Any] = next(iter(result["content"]), {})
    try:
        value = parse(first["text"].encode()) if first.get("type") == "text" else {}
    except ParseError:
        return result
    return result if isinstance(value, dict) else result | {"structuredContent": {"result": value}}


def _with_defaults(tool: McpToolEntry, arguments: dict[str, Any]) -> dict[str, Any]:
    omitted = {name: default for name, default in tool.defaults.items() if arguments.get(name) is None}
    return arguments | omitted


def _fit_together(result: dict[str, Any], text: str) -> bool:
    return sum(event_bytes(compact(each)) for each in (result, text)) <= MAX_ANSWER_BYTES - _ENVELOPE_BYTES


def require_first_page(params: PaginatedRequestParams) -> None:
    """Refuse a cursor for a list that has only one page."""
    if params.cursor is not None:
        raise InvalidParams(FieldProblem(field="cursor", message="is not a cursor of this list, which has one page"))
