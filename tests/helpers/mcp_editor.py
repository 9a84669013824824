"""`research-agent mcp` and `kho mcp`, driven by a real MCP client over pipes, and their command line."""

from __future__ import annotations

import json
import math
import os
import subprocess
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from anyio.from_thread import start_blocking_portal
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports.base import ClientTransport, TransportOptions
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from tests.helpers.program import RESEARCH_AGENT, run, start
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from anyio.from_thread import BlockingPortal
    from mcp import ClientSession

    from tests.helpers.program import RunningProgram


@dataclass(slots=True)
class Editor:
    """One session. `answer` is the user's reply to a question."""

    portal: BlockingPortal
    client: Client[Any] | None = None
    answer: bool = True
    asked: list[str] = field(default_factory=list)
    progress: list[tuple[float, float | None]] = field(default_factory=list)
    enough: anyio.Event | None = None
    enough_at: int = 0
    mode: str = "legacy"

    def tools(self) -> dict[str, Any]:
        """Return the tools by name."""
        assert self.client
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools)}

    def prompts(self) -> list[str]:
        """Return the prompts' names."""
        assert self.client
        return [prompt.name for prompt in self.portal.call(self.client.list_prompts)]

    def templates(self) -> list[str]:
        """Return the resources' URI templates."""
        assert self.client
        return [template.uri_template for template in self.portal.call(self.client.list_resource_templates)]

    def read(self, uri: str) -> Any:
        """Return the content of a resource."""
        assert self.client
        return json.loads(self.portal.call(self.client.read_resource, uri)[0].text)

    def prompt(self, name: str, **arguments: str) -> str:
        """Return the text of a prompt."""
        assert self.client
        prompt = self.portal.call(self.client.get_prompt, name, arguments)
        return str(prompt.messages[0].content.text)

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the tool's result. A protocol error is raised."""
        return self.portal.call(self._call, tool, arguments)

    def result(self, tool: str, /, **arguments: Any) -> Any:
        """Return the structured content of a successful call."""
        answer = self.call(tool, **arguments)
        assert not answer.is_error, answer
        assert answer.content[0].text
        return answer.structured_content

    def call_and_cancel(self, tool: str, /, after: int, **arguments: Any) -> None:
        """Cancel the call once it has reported progress `after` times."""
        self.portal.call(self._call_and_cancel, tool, after, arguments)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        assert self.client
        return await self.client.call_tool(tool, arguments, raise_on_error=False)

    async def _call_and_cancel(self, tool: str, after: int, arguments: dict[str, Any]) -> None:
        self.enough, self.enough_at = anyio.Event(), len(self.progress) + after
        async with anyio.create_task_group() as group:
            group.start_soon(self._call, tool, arguments)
            await self.enough.wait()
            group.cancel_scope.cancel()

    async def _on_progress(self, done: float, total: float | None, _message: str | None) -> None:
        self.progress.append((done, total))
        if self.enough and len(self.progress) >= self.enough_at:
            self.enough.set()

    async def _on_question(self, message: str, response_type: Any, _params: Any, _context: Any) -> Any:
        self.asked.append(message)
        if not self.answer:
            return ElicitResult(action="decline")
        return response_type(**dict.fromkeys(response_type.__dataclass_fields__, True))


class _PipeTransport(ClientTransport):
    """The client's side of the pipes of a running program."""

    def __init__(self, program: RunningProgram) -> None:
        self._program = program

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_options: Any
    ) -> AsyncIterator[ClientSession]:
        """Yield a session. Its end closes the program's input, which ends the program."""
        received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
        make_session = (transport_options or TransportOptions()).session_class
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, received)
            tasks.start_soon(self._write, sent)
            async with incoming, outgoing, make_session(incoming, outgoing, **session_options) as session:
                yield session

    async def _read(self, received: anyio.abc.ObjectSendStream[SessionMessage | Exception]) -> None:
        assert self._program.stdout
        async with received:
            while line := await to_thread.run_sync(self._program.stdout.readline):
                await received.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def _write(self, sent: anyio.abc.ObjectReceiveStream[SessionMessage]) -> None:
        stream = self._program.stdin
        assert stream
        with stream:
            async with sent:
                async for each in sent:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await to_thread.run_sync(stream.write, f"{text}\n")
                    await to_thread.run_sync(stream.flush)


@contextmanager
def editor(
    folder: Path,
    data: Path,
    *options: str,
    mode: str = "legacy",
    program: str = RESEARCH_AGENT,
    asks: bool = True,
    **environment: str,
) -> Iterator[Editor]:
    """Yield an editor that works in `folder`, and declares that it can ask its user unless `asks` is False."""
    pipe = subprocess.PIPE
    with (
        (folder.parent / "mcp.log").open("a") as log,
        start(
            program,
            *("mcp", "--data", str(data), *options),
            env=os.environ | environment,
            cwd=folder,
            stdin=pipe,
            stdout=pipe,
            stderr=log,
        ) as process,
        start_blocking_portal() as portal,
    ):
        running = Editor(portal, mode=mode)
        client = Client(
            _PipeTransport(process),
            mode=mode,
            progress_handler=running._on_progress,
            elicitation_handler=running._on_question if asks else None,
            timeout=CEILING_SECONDS,
        )
        with portal.wrap_async_context_manager(client) as running.client:
            yield running


def run_research_agent(folder: Path, data: Path, *arguments: str) -> tuple[int, Any]:
    """Return the exit code and the JSON of one command."""
    done = run(RESEARCH_AGENT, *arguments, "--json", "--data", str(data), cwd=folder)
    assert not done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)
