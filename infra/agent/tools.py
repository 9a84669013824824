"""The tools that /mcp offers of research-agent, over STDIO: the same methods, on this machine's files."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import (  # noqa: TC003 - pydantic reads it
    Awaitable,
    Callable,
)
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_context
from fastmcp.tools import Tool, ToolResult
from fastmcp.tools.base import InputRequiredToolResult
from fastmcp.utilities.json_schema import compress_schema
from mcp_types import InputRequiredResult, TextContent, ToolAnnotations
from pydantic import Field

from infra.agent.backend import SERVER, BackendError, deletion_unconfirmed, method_description, to_markdown
from infra.agent.elicitation import elicit_confirmation
from infra.agent.folder_upload import FolderUpload, await_ingestion
from shared.knowledge.models import Name  # noqa: TC001 - pydantic reads it
from shared.rpc.errors import KhoError
from shared.rpc.mcp_catalog import mcp_catalog
from shared.rpc.method import Params, read

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from infra.agent.backend import Backend
    from infra.agent.files.reader import FileReader

_FOLLOWED: Final = 0.5
"""Share of the time-out that a call waits for its job: clients give up after about the whole of it."""


class CodedError(ToolError):
    """A refusal on its way through FastMCP, which keeps no codes."""

    def __init__(self, refusal: BackendError) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class IngestFiles(Params):
    """What to bring in, and where."""

    path: Annotated[
        str,
        Field(min_length=1, max_length=4096, description="A file or folder of this machine, under the allowed roots."),
    ]
    collection: Name
    recursive: Annotated[bool, Field(description="Whether folders inside the folder are read too.")] = False


class _AgentTool(Tool):
    work: Annotated[Callable[[dict[str, Any]], Awaitable[Any]], Field(exclude=True)]

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Answer the arguments as they came: the method says what is wrong with them."""
        result = await self.work(arguments)
        if isinstance(result, InputRequiredResult):
            return InputRequiredToolResult(result)
        text = TextContent(type="text", text=to_markdown(self.name, result))
        return ToolResult(content=[text], structured_content=result)


class _Cancelled(Exception):
    """The client has gone; the thread that works for it ends."""


class _CancellableBackend:
    """A backend for as long as the client waits; it is told of each look at a job."""

    def __init__(self, backend: Backend, looked: Callable[[], None] = lambda: None) -> None:
        self._backend = backend
        self._looked = looked
        self.stopped = threading.Event()

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """The result as plain JSON values, or `Refused`."""
        if self.stopped.is_set():
            raise _Cancelled
        if method == "get_ingestion":
            self._looked()
        return self._backend.call(method, params)


class AgentTools:
    """What the tools do: each asks the method of its name."""

    def __init__(self, backend: Backend, reader: FileReader, timeout: float, *, followed: float = _FOLLOWED) -> None:
        self._backend = backend
        self._reader = reader
        self._timeout = timeout
        self._followed = timeout * followed

    def offered(self) -> Iterator[Tool]:
        """Each tool as /mcp describes it; only that files are named here, which are sent there."""
        own: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "manage_collections": self._manage_collections,
            "ingest_documents": self._ingest_documents,
            "augment_knowledge": self._augment_knowledge,
        }
        for offer in mcp_catalog().of(SERVER).tools:
            known = offer.described
            schema = known["inputSchema"]
            if offer.name == "ingest_documents":
                schema = compress_schema(IngestFiles.model_json_schema(), prune_titles=True)
            yield _AgentTool(
                name=offer.name,
                title=known["title"],
                description=known["description"],
                parameters=schema,
                output_schema=known["outputSchema"],
                annotations=ToolAnnotations.model_validate(known["annotations"]),
                work=own.get(offer.name) or partial(self._call, offer.name),
            )

    async def read_resource(self, uri: str) -> str:
        """What stands in a resource."""
        result = await _with_coded_errors(asyncio.to_thread(self._backend.call, "resources/read", {"uri": uri}))
        return str(result["contents"][0]["text"])

    async def _manage_collections(self, asked: dict[str, Any]) -> Any:
        params = _validate(method_description("manage_collections").params, asked)
        name = params.collection_name
        if params.action == "delete" and name is not None:
            await self._call("manage_collections", {"action": "info", "collection_name": name, "limit": 1})
            answer = await elicit_confirmation(get_context(), f"Delete the collection '{name}' and everything in it?")
            if isinstance(answer, InputRequiredResult):
                return answer
            if not answer:
                raise CodedError(deletion_unconfirmed(name))
        return await self._call("manage_collections", asked)

    async def _ingest_documents(self, asked: dict[str, Any]) -> Any:
        params = _validate(IngestFiles, asked)
        report = _progress_reporter()
        watched = _CancellableBackend(self._backend)

        def told(done: int, total: int, name: str) -> None:
            if watched.stopped.is_set():
                raise _Cancelled
            report(done, total, name)

        ingestion = FolderUpload(watched, params.collection, told)
        return await _run_cancellable(
            watched, lambda: ingestion.run(self._reader, params.path, recursive=params.recursive)
        )

    async def _augment_knowledge(self, asked: dict[str, Any]) -> Any:
        answer = await self._call("augment_knowledge", asked)
        if "job_id" not in answer:
            return answer
        begun, report = time.monotonic(), _progress_reporter()
        watched = _CancellableBackend(self._backend, lambda: report(time.monotonic() - begun, None, answer["message"]))
        try:
            async with asyncio.timeout(self._followed):
                return await _run_cancellable(watched, lambda: await_ingestion(watched, answer))
        except TimeoutError:
            return answer

    async def _call(self, method: str, asked: dict[str, Any]) -> Any:
        _validate(method_description(method).params, asked)
        try:
            async with asyncio.timeout(self._timeout):
                return await _with_coded_errors(asyncio.to_thread(self._backend.call, method, asked))
        except TimeoutError:
            said = f"It did not end within {self._timeout:g} s."
            guidance = "Ask for less, or allow more with --timeout (KHO_TIMEOUT)."
            raise CodedError(BackendError.system(said, guidance)) from None


def _validate(model: type[Params], asked: dict[str, Any]) -> Any:
    """The parameters as the method itself reads them."""
    try:
        return read(model, asked)
    except KhoError as error:
        raise CodedError(BackendError.from_kho_error(error)) from None


async def _with_coded_errors(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except BackendError as refusal:
        raise CodedError(refusal) from None


async def _run_cancellable(watched: _CancellableBackend, work: Callable[[], Any]) -> Any:
    """What `work` gives, which ends soon after nobody waits for it any more."""

    def until_stopped() -> Any:
        with contextlib.suppress(_Cancelled):
            return work()

    try:
        return await _with_coded_errors(asyncio.to_thread(until_stopped))
    finally:
        watched.stopped.set()


def _progress_reporter() -> Callable[[float, float | None, str], None]:
    """A way for threads to tell the client how far its call is."""
    ctx, loop = get_context(), asyncio.get_running_loop()

    def report(done: float, total: float | None, said: str) -> None:
        asyncio.run_coroutine_threadsafe(ctx.report_progress(done, total, said), loop)

    return report
