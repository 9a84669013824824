"""OpenAI's chat completions and responses, Anthropic's messages and Gemini on loopback, which play a plan of calls.

A request tells how far its conversation is by the results in it. So no state is kept, and the plan survives repeats.
"""

from __future__ import annotations

import contextlib
import json
import threading
from abc import ABC, abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tests.suites.clients.schema_rules import Tool, problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.suites.clients.plan import Call

_END: Final = "The plan is done."
_MODEL: Final = "a-model"


class PlannedModel(ThreadingHTTPServer):
    """A model of every provider, and the record of what one client showed it."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, plan: Sequence[Call]) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.plan = plan
        self.tools: list[Tool] = []
        self.results: list[str] = []
        self.problems: list[str] = []
        self.requests: list[str] = []

    @property
    def address(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_call(self, provider: str, tools: list[Tool], results: list[str]) -> tuple[Tool, Call] | None:
        """Record the tools and results of a request, and return the tool and the call that follow."""
        if tools:
            self.tools = tools
            self.problems += [each for each in problems(provider, tools) if each not in self.problems]
        if len(results) >= len(self.results):
            self.results = results
        if not tools or len(results) >= len(self.plan):
            return None
        call = self.plan[len(results)]
        tool = find_tool(tools, call.tool)
        if tool is None:
            self.problems.append(f"{call.tool}: not among the tools")
            return None
        return tool, call


def find_tool(tools: Sequence[Tool], name: str) -> Tool | None:
    """Return the tool of this name, which clients prefix with the server's."""
    endings = (f"__{name}", f"_kho_{name}", f"-{name}")
    exact = [tool for tool in tools if tool.name == name]
    return next(iter(exact or [tool for tool in tools if tool.name.endswith(endings)]), None)


@contextlib.contextmanager
def planned_model(plan: Sequence[Call]) -> Iterator[PlannedModel]:
    """Serve inside the block."""
    with PlannedModel(plan) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Request(BaseHTTPRequestHandler):
    server: PlannedModel
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a list of models, in each provider's form."""
        self._send(json.dumps({"object": "list", "data": [], "models": []}).encode())

    def do_POST(self) -> None:
        """Answer the next call of the plan in the request's dialect."""
        path = urlsplit(self.path).path
        self.server.requests.append(path)
        body = json.loads(self._body() or b"{}")
        dialect = next((each for ending, each in _DIALECTS.items() if path.endswith(ending)), None)
        if dialect is None:
            self._send(json.dumps({"input_tokens": 1, "totalTokens": 1}).encode())
            return
        following = self.server.next_call(dialect.provider, dialect.tools(body), dialect.results(body))
        number = len(dialect.results(body))
        answer = dialect.call(number, *following) if following else dialect.text(_END)
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            events = "".join(_event(each) for each in dialect.stream(answer))
            self._send(events.encode(), "text/event-stream")
        else:
            self._send(json.dumps(answer).encode())

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the library's name
        """Log nothing."""

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _send(self, body: bytes, kind: str = "application/json") -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body)


def _event(data: Any) -> str:
    if isinstance(data, str):
        return f"data: {data}\n\n"
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"


def _text_of(content: Any) -> str:
    """Return the text of a message's content: a string, or parts of it."""
    if isinstance(content, str):
        return content
    return "".join(_text_of(part.get("text", "")) for part in content or ())


class _Dialect(ABC):
    """One provider's form of requests and answers."""

    provider = "openai"

    @abstractmethod
    def tools(self, body: dict[str, Any]) -> list[Tool]:
        """Return the tools that a request declares."""

    @abstractmethod
    def results(self, body: dict[str, Any]) -> list[str]:
        """Return the texts of the results of tools that a request shows."""

    @abstractmethod
    def text(self, text: str) -> dict[str, Any]:
        """Return an answer in words."""

    @abstractmethod
    def call(self, number: int, tool: Tool, call: Call) -> dict[str, Any]:
        """Return an answer that calls a tool."""

    @abstractmethod
    def stream(self, answer: dict[str, Any]) -> Iterator[Any]:
        """Yield the events of an answer."""


class _Chat(_Dialect):
    """OpenAI's chat completions."""

    def tools(self, body: dict[str, Any]) -> list[Tool]:
        functions = [each["function"] for each in body.get("tools") or ()]
        return [_openai_tool(each) for each in functions]

    def results(self, body: dict[str, Any]) -> list[str]:
        return [_text_of(each["content"]) for each in body["messages"] if each["role"] == "tool"]

    def text(self, text: str) -> dict[str, Any]:
        return self._answer({"role": "assistant", "content": text}, "stop")

    def call(self, number: int, tool: Tool, call: Call) -> dict[str, Any]:
        function = {"name": tool.name, "arguments": json.dumps(call.arguments)}
        calls = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
        return self._answer({"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")

    def stream(self, answer: dict[str, Any]) -> Iterator[Any]:
        choice = dict(answer["choices"][0])
        choice["delta"] = choice.pop("message")
        head = answer | {"object": "chat.completion.chunk"}
        yield head | {"choices": [choice | {"finish_reason": None}]}
        yield head | {"choices": [choice | {"delta": {}}]}
        yield "[DONE]"

    def _answer(self, message: dict[str, Any], reason: str) -> dict[str, Any]:
        choice = {"index": 0, "message": message, "finish_reason": reason}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {"id": "chat_1", "object": "chat.completion", "created": 1, "model": _MODEL, "choices": [choice],
                "usage": usage}  # fmt: skip


class _Responses(_Dialect):
    """OpenAI's responses."""

    def tools(self, body: dict[str, Any]) -> list[Tool]:
        tools = []
        for each in body.get("tools") or ():
            inner = each["tools"] if each["type"] == "namespace" else [each] if each["type"] == "function" else []
            namespace = each["name"] if each["type"] == "namespace" else ""
            tools += [_openai_tool(one, namespace) for one in inner]
        return tools

    def results(self, body: dict[str, Any]) -> list[str]:
        items = body["input"] if isinstance(body["input"], list) else []
        return [_text_of(each["output"]) for each in items if each.get("type") == "function_call_output"]

    def text(self, text: str) -> dict[str, Any]:
        part = {"type": "output_text", "text": text, "annotations": []}
        return self._answer({"type": "message", "id": "msg_1", "role": "assistant", "content": [part]})

    def call(self, number: int, tool: Tool, call: Call) -> dict[str, Any]:
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": tool.name,
                "arguments": json.dumps(call.arguments)}  # fmt: skip
        return self._answer(item | ({"namespace": tool.namespace} if tool.namespace else {}))

    def stream(self, answer: dict[str, Any]) -> Iterator[Any]:
        head = answer | {"status": "in_progress", "output": []}
        item = answer["output"][0]
        events = [
            {"type": "response.created", "response": head},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": answer},
        ]
        yield from (event | {"sequence_number": number} for number, event in enumerate(events))

    def _answer(self, item: dict[str, Any]) -> dict[str, Any]:
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **details}
        return {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": _MODEL,
                "output": [item | {"status": "completed"}], "usage": usage, "error": None, "incomplete_details": None,
                "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0, "top_p": 1.0,
                "tool_choice": "auto", "tools": []}  # fmt: skip


class _Anthropic(_Dialect):
    """Anthropic's messages."""

    provider = "anthropic"

    def tools(self, body: dict[str, Any]) -> list[Tool]:
        own = [each for each in body.get("tools") or () if "input_schema" in each]
        return [Tool(each["name"], each["input_schema"], each.get("description", "")) for each in own]

    def results(self, body: dict[str, Any]) -> list[str]:
        contents = [each["content"] for each in body["messages"] if isinstance(each["content"], list)]
        blocks = [block for content in contents for block in content if block["type"] == "tool_result"]
        return [_text_of(block.get("content")) for block in blocks]

    def text(self, text: str) -> dict[str, Any]:
        return self._answer({"type": "text", "text": text}, "end_turn")

    def call(self, number: int, tool: Tool, call: Call) -> dict[str, Any]:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool.name, "input": call.arguments}
        return self._answer(block, "tool_use")

    def stream(self, answer: dict[str, Any]) -> Iterator[Any]:
        block = answer["content"][0]
        yield {"type": "message_start", "message": answer | {"content": [], "stop_reason": None}}
        if block["type"] == "text":
            empty, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            empty = block | {"input": {}}
        yield {"type": "content_block_start", "index": 0, "content_block": empty}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        reason = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}

    def _answer(self, block: dict[str, Any], reason: str) -> dict[str, Any]:
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": _MODEL, "content": [block],
                "stop_reason": reason, "stop_sequence": None, "usage": usage}  # fmt: skip


class _Gemini(_Dialect):
    """Gemini's generateContent."""

    provider = "gemini"

    def tools(self, body: dict[str, Any]) -> list[Tool]:
        groups = [
            each.get("functionDeclarations") or each.get("function_declarations") for each in body.get("tools") or ()
        ]
        return [_gemini_tool(each) for group in groups for each in group or ()]

    def results(self, body: dict[str, Any]) -> list[str]:
        parts = [part for each in body["contents"] for part in each["parts"]]
        responses = [part.get("functionResponse") or part.get("function_response") for part in parts]
        return [json.dumps(each["response"], ensure_ascii=False) for each in responses if each]

    def text(self, text: str) -> dict[str, Any]:
        return self._answer({"text": text})

    def call(self, number: int, tool: Tool, call: Call) -> dict[str, Any]:
        return self._answer({"functionCall": {"id": f"call_{number}", "name": tool.name, "args": call.arguments}})

    def stream(self, answer: dict[str, Any]) -> Iterator[Any]:
        yield answer

    def _answer(self, part: dict[str, Any]) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": _MODEL, "responseId": "1"}


def _openai_tool(each: dict[str, Any], namespace: str = "") -> Tool:
    schema = each.get("parameters") or {}
    return Tool(each["name"], schema, each.get("description") or "", namespace, is_strict=bool(each.get("strict")))


def _gemini_tool(each: dict[str, Any]) -> Tool:
    json_schema = each.get("parametersJsonSchema") or each.get("parameters_json_schema")
    schema = json_schema or each.get("parameters") or {}
    return Tool(each["name"], schema, each.get("description", ""), is_openapi=json_schema is None)


_DIALECTS: Final[dict[str, _Dialect]] = {
    "/chat/completions": _Chat(),
    "/responses": _Responses(),
    "/messages": _Anthropic(),
    ":generateContent": _Gemini(),
    ":streamGenerateContent": _Gemini(),
}
