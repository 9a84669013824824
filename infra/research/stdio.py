"""MCP over STDIO: the tools of research-agent in an editor, on this machine's files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import quote

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.server.elicitation import AcceptedElicitation
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult, TextContent
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field
from pydantic import ValidationError as PydanticValidationError

from infra.research.backend import Refused, described, in_markdown
from infra.research.ingesting import FolderIngestion, awaited
from research_agent import COLLECTIONS_URI, MCP_PROMPTS, MCP_RESOURCES
from shared.rpc.method import problems
from shared.rpc.offers import hints

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from fastmcp.server.middleware import CallNext, MiddlewareContext

    from infra.reading.reader import FileReader
    from infra.research.backend import Backend

_INVALID_PARAMS: Final = -32602
_CONFIRMATION: Final = "confirm"
_CONFIRMED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {_CONFIRMATION: {"type": "boolean", "title": "Delete it"}},
    "required": [_CONFIRMATION],
}
_INSTRUCTIONS: Final = (
    "A knowledge base of documents. Make a collection with manage_collections, fill it with ingest_documents (files "
    "and folders of this machine) or augment_knowledge (a text), and search with query_knowledge_base."
)


class _CodedError(ToolError):
    """A refusal on its way through FastMCP, which keeps no codes."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class _Codes(Middleware):
    """Gives errors the seed's codes: as JSON-RPC errors, or where the protocol's revision keeps those, as results."""

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        try:
            return await call_next(context)
        except _CodedError as error:
            refusal = error.refusal
        except ValidationError as error:
            guidance = "Correct the arguments and call again; nothing was changed."
            wrong = error.__cause__
            details: Any = problems(wrong) if isinstance(wrong, PydanticValidationError) else {"reason": str(error)}
            data = {"code": "INVALID_PARAMS", "details": details, "guidance": guidance}
            refusal = Refused(_INVALID_PARAMS, "Invalid params", data)
        asked = context.fastmcp_context and context.fastmcp_context.request_context
        if not asked or asked.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(refusal.code, refusal.message, refusal.data) from None
        said = refusal.data | {"message": refusal.message}
        text = f"{said['code']}: {refusal.message} {said.get('guidance', '')}".strip()
        return ToolResult(content=[TextContent(type="text", text=text)], structured_content=said, is_error=True)


class _Stopped(Exception):
    """The client has cancelled; the thread that works for it ends."""


def server(backend: Backend, reader: FileReader, timeout: float) -> FastMCP:
    """The MCP server, with a tool for each method."""
    mcp: FastMCP = FastMCP("research-agent", _INSTRUCTIONS, middleware=[_Codes()], mask_error_details=True)
    tools = _Tools(backend, reader, timeout)
    for run in (
        tools.query_knowledge_base,
        tools.manage_collections,
        tools.ingest_documents,
        tools.manage_projects,
        tools.augment_knowledge,
    ):
        known = described(run.__name__).tool
        assert known
        schema = described(run.__name__).result.json_schema(mode="serialization")
        mcp.tool(
            run,
            title=known.title,
            description=known.description,
            annotations=hints(known.effect, open_world=known.open_world),
            output_schema=schema,
        )
    for resource in MCP_RESOURCES:
        read = tools.read_named if resource.is_template else partial(tools.read, resource.uri)
        mcp.resource(
            resource.uri,
            name=resource.name,
            title=resource.title,
            description=resource.description,
            mime_type=resource.mime_type,
        )(read)
    for prompt in MCP_PROMPTS:
        fill = {"refine_query": tools.refine_query, "extract_context": tools.extract_context}[prompt.name]
        mcp.prompt(fill, name=prompt.name, title=prompt.title, description=prompt.description)
    return mcp


class _Tools:
    """What the tools do; each is the method of its name."""

    def __init__(self, backend: Backend, reader: FileReader, timeout: float) -> None:
        self._backend = backend
        self._reader = reader
        self._timeout = timeout

    async def query_knowledge_base(
        self,
        query: Annotated[str, Field(description="What you look for, in any language.")],
        collections: Annotated[str | None, Field(description="Names of collections, parted by commas.")] = None,
        top_k: Annotated[int, Field(ge=1, le=50)] = 10,
        document_context: Annotated[str | None, Field(description="What you are working on.")] = None,
        project_name: Annotated[str | None, Field(description="Search this project's default collections.")] = None,
    ) -> ToolResult:
        asked = {"query": query, "collections": collections, "top_k": top_k}
        asked |= {"document_context": document_context, "project_name": project_name}
        return await self._call("query_knowledge_base", asked)

    async def manage_collections(
        self,
        ctx: Context,
        action: Literal["create", "list", "delete", "info"],
        collection_name: str | None = None,
        collection_type: Literal["fundamental", "project-specific"] | None = None,
        project_name: str | None = None,
    ) -> ToolResult | InputRequiredResult:
        asked = {"action": action, "collection_name": collection_name, "collection_type": collection_type}
        asked |= {"project_name": project_name}
        if action == "delete" and collection_name:
            await self._call("manage_collections", {"action": "info", "collection_name": collection_name})
            question = f"Delete the collection '{collection_name}' and everything in it?"
            answer = await _asked(ctx, question)
            if isinstance(answer, InputRequiredResult):
                return answer
            if not answer:
                raise _CodedError(_unconfirmed(collection_name))
        return await self._call("manage_collections", asked)

    async def ingest_documents(
        self,
        ctx: Context,
        path: Annotated[str, Field(description="A file or folder of this machine, under the allowed roots.")],
        collection: str,
        *,
        recursive: Annotated[bool, Field(description="Whether folders inside the folder are read too.")] = False,
    ) -> ToolResult:
        loop = asyncio.get_running_loop()
        stopped = threading.Event()

        def told(done: int, total: int, name: str) -> None:
            if stopped.is_set():
                raise _Stopped
            asyncio.run_coroutine_threadsafe(_reported(ctx, done, total, name), loop)

        def work() -> Any:
            with contextlib.suppress(_Stopped):
                ingestion = FolderIngestion(self._backend, collection, told)
                return ingestion.run(self._reader, path, recursive=recursive)
            return None

        try:
            return await self._answered("ingest_documents", asyncio.to_thread(work))
        finally:
            stopped.set()

    async def manage_projects(
        self,
        action: Literal["create", "link", "unlink", "set-defaults", "list", "info"],
        project_name: str | None = None,
        collections: Annotated[str | None, Field(description="Names of collections, parted by commas.")] = None,
    ) -> ToolResult:
        asked = {"action": action, "project_name": project_name, "collections": collections}
        return await self._call("manage_projects", asked)

    async def augment_knowledge(
        self,
        content: Annotated[str, Field(description="The research, in Markdown.")],
        source: Annotated[str, Field(description="An identifier or URL; the same source replaces what was there.")],
        collection: str,
        title: str | None = None,
    ) -> ToolResult:
        asked = {"content": content, "source": source, "collection": collection, "title": title}
        return await self._call("augment_knowledge", asked)

    async def read(self, uri: str) -> str:
        result = await self._refusable(asyncio.to_thread(self._backend.call, "resources/read", {"uri": uri}))
        return str(result["contents"][0]["text"])

    async def read_named(self, collection_name: str) -> str:
        return await self.read(f"{COLLECTIONS_URI}/{quote(collection_name, safe='')}")

    def refine_query(self, query: str) -> str:
        return _filled("refine_query", query=query)

    def extract_context(self, task: str) -> str:
        return _filled("extract_context", task=task)

    async def _call(self, method: str, asked: dict[str, Any]) -> ToolResult:
        given = {name: value for name, value in asked.items() if value is not None}

        def work() -> Any:
            return awaited(self._backend, self._backend.call(method, given))

        try:
            async with asyncio.timeout(self._timeout):
                return await self._answered(method, asyncio.to_thread(work))
        except TimeoutError:
            said = f"It did not end within {self._timeout:g} s."
            guidance = "Ask for less, or allow more with --timeout (KHO_TIMEOUT)."
            raise _CodedError(Refused.system(said, guidance)) from None

    async def _answered(self, method: str, work: Coroutine[Any, Any, Any]) -> ToolResult:
        result = await self._refusable(work)
        text = TextContent(type="text", text=in_markdown(method, result))
        return ToolResult(content=[text], structured_content=result)

    @staticmethod
    async def _refusable(work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await work
        except Refused as refusal:
            raise _CodedError(refusal) from None


def _filled(name: str, **arguments: str) -> str:
    text = next(each.text for each in MCP_PROMPTS if each.name == name)
    for argument, value in arguments.items():
        text = text.replace(f"{{{argument}}}", value)
    return text


async def _reported(ctx: Context, done: int, total: int, name: str) -> None:
    await ctx.report_progress(done, total, name)


async def _asked(ctx: Context, question: str) -> bool | InputRequiredResult:
    """What the person at the editor says, however this revision of the protocol asks."""
    asked = ctx.request_context
    if asked and asked.protocol_version in MODERN_PROTOCOL_VERSIONS:
        answers = ctx.input_responses
        if not answers or _CONFIRMATION not in answers:
            form = ElicitRequestFormParams(mode="form", message=question, requested_schema=_CONFIRMED)
            return InputRequiredResult(
                result_type="input_required",
                input_requests={_CONFIRMATION: ElicitRequest(method="elicitation/create", params=form)},
            )
        answer = answers[_CONFIRMATION]
        return isinstance(answer, ElicitResult) and answer.action == "accept" and _says_yes(answer.content)
    try:
        said = await ctx.elicit(question, bool)
    except MCPError:
        return False  # the client cannot ask
    return isinstance(said, AcceptedElicitation) and said.data is True


def _says_yes(content: dict[str, Any] | None) -> bool:
    return bool(content and content.get(_CONFIRMATION) is True)


def _unconfirmed(name: str) -> Refused:
    guidance = f"Confirm when asked, or delete it at a prompt: research-agent collections delete {name} --yes"
    data = {"code": "COLLECTION_NOT_CONFIRMED", "details": {"collection": name}, "guidance": guidance}
    return Refused(-32002, f"The collection '{name}' was not deleted: nobody confirmed it.", data)


def run(backend: Backend, reader: FileReader, *, timeout: float, debug: bool) -> None:
    """Serve an editor until it closes the pipe; logs go to the standard error alone."""
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING)
    serve: Callable[..., None] = server(backend, reader, timeout).run
    serve(transport="stdio", show_banner=False)
