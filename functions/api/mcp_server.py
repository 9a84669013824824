"""The MCP server of Kho: tools, resources, prompts and completions of an MCP catalog."""

from collections.abc import Callable, Collection
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from api.mcp_errors import REVISIONS, protocol_error
from api.mcp_resources import McpResources
from api.mcp_sdk import (
    CacheableMethod,
    CacheHint,
    CallNext,
    CallToolRequestParams,
    CompleteRequestParams,
    DiscoverResult,
    GetPromptRequestParams,
    HandlerResult,
    MCPError,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    Server,
    ServerMiddleware,
    ServerRequestContext,
)
from api.mcp_tools import McpTools
from api.mcp_transport import McpRequestContext
from shared.platform.version import VERSION
from shared.rpc.caller import Role
from shared.rpc.errors import InvalidParams, KhoError
from shared.rpc.mcp_catalog import McpCatalog
from shared.rpc.method import field_problems
from shared.rpc.observation import internal_errors

Answer = Callable[[Any, McpRequestContext, str], dict[str, Any]]
RequestHandler = tuple[str, type[BaseModel], Answer]
Context = ServerRequestContext[Any, Any]

EVERYTHING: Final = (
    "a store for agents. Tools named memory_… keep conversations; the descriptions of the others say what they do"
)
_INSTRUCTIONS: Final = (
    "Kho: {}. Take the ids that a tool needs from the results of other tools or from the resources. The 'guidance' of "
    "an error says what to do."
)
_CACHED: Final = CacheHint(ttl_ms=60_000, scope="private")
_FRESH: Final = CacheHint(ttl_ms=0, scope="private")
UNCHANGING: Final = ("server/discover", "tools/list", "prompts/list", "resources/templates/list")


def server_for_catalog(catalog: McpCatalog, subject: str = EVERYTHING) -> Server[Any]:
    """Return the MCP server of `catalog`, whose instructions name its subject."""
    tools = McpTools(catalog.tools)
    answers = request_handlers(tools, McpResources(catalog.resources, catalog.prompts))
    return build_server(answers, instructions_of(subject), tools.schema_of, UNCHANGING)


def request_handlers(tools: McpTools, resources: McpResources) -> list[RequestHandler]:
    """Return the handler of each request about tools, resources and prompts."""
    return [
        ("tools/list", PaginatedRequestParams, tools.list_tools),
        ("tools/call", CallToolRequestParams, tools.call_tool),
        ("resources/list", PaginatedRequestParams, resources.list_resources),
        ("resources/templates/list", PaginatedRequestParams, resources.list_templates),
        ("resources/read", ReadResourceRequestParams, resources.read_resource),
        ("prompts/list", PaginatedRequestParams, resources.list_prompts),
        ("prompts/get", GetPromptRequestParams, resources.get_prompt),
        ("completion/complete", CompleteRequestParams, resources.complete),
    ]


def instructions_of(subject: str) -> str:
    """Return a server's instructions for models."""
    return _INSTRUCTIONS.format(subject)


def build_server(
    answers: list[RequestHandler],
    instructions: str,
    schema_of: Callable[[str], dict[str, Any] | None],
    unchanging: Collection[str],
    *first: ServerMiddleware[Any],
) -> Server[Any]:
    """Return an MCP server with these request handlers; answers to `unchanging` methods are cached."""
    hints: dict[CacheableMethod, CacheHint] = {
        method: _CACHED if method in unchanging else _FRESH for method in get_args(CacheableMethod)
    }
    server: Server[Any] = Server("kho", title="Kho", version=VERSION, instructions=instructions, cache_hints=hints)
    # This replaces the SDK's own middleware, which only traces.
    server.middleware = [_TranslateErrors(), *first, _CacheLists(unchanging)]
    # No tool mirrors an argument in a header. Without this, the SDK lists all tools before each call to check that.
    server.get_tool_input_schema = schema_of
    for method, params, answer in answers:
        _add(server, method, params, answer)
    list_revisions(server, instructions)
    return server


def list_revisions(server: Server[Any], instructions: str) -> None:
    """Make `server/discover` name every supported revision. The SDK names only those without a handshake."""

    async def discover(context: Context, _params: RequestParams | None) -> DiscoverResult:
        capabilities = server.get_capabilities(protocol_version=context.protocol_version)
        return DiscoverResult(supported_versions=list(REVISIONS), capabilities=capabilities, instructions=instructions)

    server.add_request_handler("server/discover", RequestParams, discover)


def request_context(context: Context) -> McpRequestContext:
    """Return the caller and the correlation id of an SDK context."""
    assert context.request is not None
    request: McpRequestContext = context.request.scope["state"]["request_context"]
    return request


def _add(server: Server[Any], method: str, params: type[BaseModel], answer: Answer) -> None:
    async def handle(context: Context, read: BaseModel) -> dict[str, Any]:
        # The event loop serves this call alone, so it may block.
        return {"resultType": "complete"} | answer(read, request_context(context), context.protocol_version)

    server.add_request_handler(method, params, handle)


class _CacheLists(ServerMiddleware[Any]):
    """Caches lists that only a deployment changes: serialising them takes longer than the rest of the request."""

    def __init__(self, unchanging: Collection[str]) -> None:
        self._unchanging = unchanging
        self._results: dict[tuple[str, str, frozenset[Role]], HandlerResult] = {}

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.method not in self._unchanging or (ctx.params or {}).keys() - {"_meta"}:
            return await call_next(ctx)
        key = (ctx.method, ctx.protocol_version, request_context(ctx).caller.roles)
        if key not in self._results:
            self._results[key] = await call_next(ctx)
        return self._results[key]


class _TranslateErrors(ServerMiddleware[Any]):
    """Turns exceptions into errors of the contract and the protocol, without the exception's text."""

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        try:
            with internal_errors(request_context(ctx).correlation_id):
                try:
                    return await call_next(ctx)
                except ValidationError as error:
                    raise InvalidParams(*field_problems(error)) from None
                except MCPError as error:
                    failure = error
        except KhoError as error:
            failure = protocol_error(error, "", ctx.protocol_version)
        raise failure from None
