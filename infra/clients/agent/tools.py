"""research-agent's tools over STDIO: the methods that /mcp offers, with this machine's files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable  # noqa: TC003 - pydantic reads it
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_context
from fastmcp.tools import Tool, ToolResult
from fastmcp.tools.base import InputRequiredToolResult
from mcp_types import InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field

from infra.clients.agent.backend import (
    SERVER,
    BackendError,
    deletion_unconfirmed,
    method_description,
    removal_unconfirmed,
    to_markdown,
)
from infra.clients.agent.elicitation import can_ask, elicit_confirmation
from infra.clients.agent.folder_upload import FolderUpload, await_ingestion
from shared.knowledge.models import Name  # noqa: TC001 - pydantic reads it
from shared.rpc.errors import KhoError
from shared.rpc.mcp_catalog import mcp_catalog
from shared.rpc.method import Params, read

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from mcp_types import Tool as McpTool

    from infra.clients.agent.backend import Backend
    from infra.clients.agent.files.reader import FileReader

_QUESTION_SECONDS: Final = 25.0
"""The time in which an editor's user may answer a question."""
_JOB_WAIT_SHARE: Final = 0.5
"""The share of the time-out that a call waits for its job. Clients give up after about the whole time-out."""


class CodedError(ToolError):
    """A backend error inside FastMCP, whose own errors have no codes. It is the caller's, so only debugging logs it."""

    def __init__(self, error: BackendError) -> None:
        super().__init__(error.message, log_level=logging.DEBUG)
        self.error = error


class IngestFiles(Params):
    """The parameters of ingest_documents over STDIO."""

    path: Annotated[
        str,
        Field(min_length=1, max_length=4096, description="A file or folder of this machine, under the allowed roots."),
    ]
    collection: Name
    recursive: Annotated[bool, Field(description="Also read folders inside the folder.")] = False


class _AgentTool(Tool):
    work: Annotated[Callable[[dict[str, Any]], Awaitable[Any]], Field(exclude=True)]

    def to_mcp_tool(self, **overrides: Any) -> McpTool:
        """Describe the tool without the framework's metadata."""
        return super().to_mcp_tool(_meta=None, **overrides)

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the tool with unvalidated arguments: the method validates them."""
        result = await self.work(arguments)
        if isinstance(result, InputRequiredResult):
            return InputRequiredToolResult(result)
        text = TextContent(type="text", text=to_markdown(self.name, result))
        return ToolResult(content=[text], structured_content=result)


class _Cancelled(Exception):
    """The client has cancelled its call, so the thread that works for it ends."""


class _CancellableBackend:
    """A backend whose calls fail once the client has cancelled. `on_poll` runs at each poll of a job."""

    def __init__(self, backend: Backend, on_poll: Callable[[], None] = lambda: None) -> None:
        self._backend = backend
        self._on_poll = on_poll
        self.stopped = threading.Event()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result as plain JSON values, or raise `BackendError`."""
        if self.stopped.is_set():
            raise _Cancelled
        if method == "get_ingestion":
            self._on_poll()
        return self._backend.call(method, params)


class AgentTools:
    """The tools of the MCP server. Each calls the method of its name."""

    def __init__(
        self,
        backend: Backend,
        reader: FileReader,
        timeout: float,
        *,
        job_wait_share: float = _JOB_WAIT_SHARE,
        question_seconds: float = _QUESTION_SECONDS,
    ) -> None:
        self._backend = backend
        self._reader = reader
        self._timeout = timeout
        self._job_seconds = timeout * job_wait_share
        self._question_seconds = question_seconds

    def list(self) -> Iterator[Tool]:
        """Yield each tool as /mcp describes it, except that ingest_documents takes a path of this machine."""
        own: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "manage_collections": self._manage_collections,
            "ingest_documents": self._ingest_documents,
            "augment_knowledge": self._augment_knowledge,
            "remove_document": self._remove_document,
        }
        for offer in mcp_catalog().of(f"{SERVER}/").tools:
            description = offer.described
            schema = description["inputSchema"]
            if offer.name == "ingest_documents":
                schema = _schema_of_files(schema["properties"])
            yield _AgentTool(
                name=offer.name,
                title=description["title"],
                description=description["description"],
                parameters=schema,
                annotations=ToolAnnotations.model_validate(description["annotations"]),
                work=own.get(offer.name) or partial(self._call, offer.name),
            )

    async def read_resource(self, uri: str) -> str:
        """Return the text of a resource."""
        result = await _with_coded_errors(asyncio.to_thread(self._backend.call, "resources/read", {"uri": uri}))
        return str(result["contents"][0]["text"])

    async def _manage_collections(self, arguments: dict[str, Any]) -> Any:
        params = _validate(method_description("manage_collections").params, arguments)
        name = params.collection_name
        if params.action == "delete" and name is not None:
            await self._call("manage_collections", {"action": "info", "collection_name": name, "limit": 1})
            question = f"Delete the collection '{name}' and everything in it?"
            return await self._call_confirmed(
                "manage_collections", arguments, name, question, partial(deletion_unconfirmed, name)
            )
        return await self._call("manage_collections", arguments)

    async def _remove_document(self, arguments: dict[str, Any]) -> Any:
        params = _validate(method_description("remove_document").params, arguments)
        question = f"Remove the document '{params.path}' from the collection '{params.collection_name}'?"
        return await self._call_confirmed(
            "remove_document", arguments, params.path, question, partial(removal_unconfirmed, params.path)
        )

    async def _call_confirmed(
        self,
        method: str,
        arguments: dict[str, Any],
        name: str,
        question: str,
        unconfirmed: Callable[..., BackendError],
    ) -> Any:
        """Call a method that removes `name`, if the user agrees."""
        context = get_context()
        if not can_ask(context):
            if arguments.get("confirm") is None:
                guidance = f"If the user agrees, call again with the argument confirm: '{name}'."
                raise CodedError(unconfirmed(guidance))
            return await self._call(method, arguments)
        confirmation = await elicit_confirmation(context, question, self._question_seconds)
        if isinstance(confirmation, InputRequiredResult):
            return confirmation
        if not confirmation:
            raise CodedError(unconfirmed())
        return await self._call(method, arguments)

    async def _ingest_documents(self, arguments: dict[str, Any]) -> Any:
        params = _validate(IngestFiles, arguments)
        report = _progress_reporter()
        backend = _CancellableBackend(self._backend)

        def progress(done: int, total: int, name: str) -> None:
            if backend.stopped.is_set():
                raise _Cancelled
            report(done, total, name)

        upload = FolderUpload(backend, params.collection, progress)
        return await _run_cancellable(
            backend, lambda: upload.run(self._reader, params.path, recursive=params.recursive)
        )

    async def _augment_knowledge(self, arguments: dict[str, Any]) -> Any:
        response = await self._call("augment_knowledge", arguments)
        if "job_id" not in response:
            return response
        started, report = time.monotonic(), _progress_reporter()
        backend = _CancellableBackend(
            self._backend, lambda: report(time.monotonic() - started, None, response["message"])
        )
        try:
            async with asyncio.timeout(self._job_seconds):
                return await _run_cancellable(backend, lambda: await_ingestion(backend, response))
        except TimeoutError:
            return response

    async def _call(self, method: str, arguments: dict[str, Any]) -> Any:
        _validate(method_description(method).params, arguments)
        try:
            async with asyncio.timeout(self._timeout):
                return await _with_coded_errors(asyncio.to_thread(self._backend.call, method, arguments))
        except TimeoutError:
            message = f"It did not end within {self._timeout:g} s."
            guidance = "Request less, or allow more time with --timeout (KHO_TIMEOUT)."
            raise CodedError(BackendError.system(message, guidance)) from None


def _schema_of_files(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `IngestFiles`, whose fields are described as at /mcp, except the path."""
    fields = IngestFiles.model_fields
    own = {name: properties[name] for name in fields}
    own["path"] = own["path"] | {"description": fields["path"].description}
    required = [name for name, field in fields.items() if field.is_required()]
    return {"additionalProperties": False, "properties": own, "required": required, "type": "object"}


def _validate(model: type[Params], arguments: dict[str, Any]) -> Any:
    """Parse the arguments as the method does."""
    try:
        return read(model, arguments)
    except KhoError as error:
        raise CodedError(BackendError.from_kho_error(error)) from None


async def _with_coded_errors(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except BackendError as error:
        raise CodedError(error) from None


async def _run_cancellable(backend: _CancellableBackend, work: Callable[[], Any]) -> Any:
    """Run `work` in a thread. If the call is cancelled, `work` ends at its next use of the backend."""

    def until_stopped() -> Any:
        with contextlib.suppress(_Cancelled):
            return work()

    try:
        return await _with_coded_errors(asyncio.to_thread(until_stopped))
    finally:
        backend.stopped.set()


def _progress_reporter() -> Callable[[float, float | None, str], None]:
    """Return a function by which threads send progress notifications to the client."""
    ctx, loop = get_context(), asyncio.get_running_loop()

    def report(done: float, total: float | None, message: str) -> None:
        asyncio.run_coroutine_threadsafe(ctx.report_progress(done, total, message), loop)

    return report
