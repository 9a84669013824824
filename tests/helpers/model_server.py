"""Language models on loopback: OpenAI's chat completions and Bedrock's Converse, with answers set by the test."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

    Behaviour = Callable[["ModelRequestHandler"], None]

MODEL: Final = "amazon.nova-lite-v1:0"
KEY: Final = "sk-a-secret-key"


class ModelServer(ThreadingHTTPServer):
    """A server that speaks both protocols, and a record of its requests."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ModelRequestHandler)
        self.behave: Behaviour = reply_with("Tóm tắt.")
        self.asked: list[ReceivedPrompt] = []
        self.ending = threading.Event()

    @property
    def address(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def settings(self, key: str) -> dict[str, str]:
        """Return the settings with which `kho serve` calls this model with `key` and logs every level."""
        return {
            "KHO_MODEL_PROVIDER": "openai",
            "KHO_MODEL": "a-model",
            "KHO_MODEL_URL": f"{self.address}/v1",
            "KHO_MODEL_KEY": key,
            "POWERTOOLS_LOG_LEVEL": "DEBUG",
        }


class ReceivedPrompt:
    """One prompt as received."""

    def __init__(self, path: str, headers: Message, body: Any) -> None:
        self.path, self.headers, self.body = path, headers, body

    @property
    def system(self) -> str:
        """Return the instructions."""
        return str(self.body["messages"][0]["content"] if self.is_openai else self.body["system"][0]["text"])

    @property
    def prompt(self) -> str:
        """Return the text of the user's turn."""
        content = self.body["messages"][-1]["content"]
        return str(content if self.is_openai else content[0]["text"])

    @property
    def is_openai(self) -> bool:
        """Return True if the request used OpenAI's protocol."""
        return self.path.endswith("/chat/completions")


class ModelRequestHandler(BaseHTTPRequestHandler):
    """One request to a model."""

    server: ModelServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Record the request and behave as the test has set."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked = ReceivedPrompt(unquote(self.path), self.headers, body)
        self.server.asked.append(self.asked)
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.server.behave(self)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the library's name
        """Log nothing."""

    def answer(self, body: bytes, status: int = 200, length: int | None = None) -> None:
        """Send an answer."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body) if length is None else length))
        self.send_header("connection", "close")  # so that no client reuses a connection that is about to end
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def model_server() -> Iterator[ModelServer]:
    """Serve inside the block."""
    with ModelServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.ending.set()
            server.shutdown()
            thread.join()


def reply_with(text: str) -> Behaviour:
    """Answer `text` in the protocol of the request."""

    def behave(conversation: ModelRequestHandler) -> None:
        message: Any
        if conversation.asked.is_openai:
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            message = {
                "choices": [choice],
                "usage": {"prompt_tokens": 1300, "completion_tokens": 215, "total_tokens": 1515},
            }
        else:
            message = {
                "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
                "stopReason": "end_turn",
                "usage": {"inputTokens": 1300, "outputTokens": 215, "totalTokens": 1515},
                "metrics": {"latencyMs": 9},
            }
        conversation.answer(json.dumps(message).encode())

    return behave


def _silence(conversation: ModelRequestHandler) -> None:
    conversation.server.ending.wait()


def _trickle(conversation: ModelRequestHandler) -> None:
    conversation.answer(b"", length=1_000_000)
    while not conversation.server.ending.wait(0.05):
        conversation.wfile.write(b"\n")


FAILING: Final[dict[str, Behaviour]] = {
    "an error": lambda conversation: conversation.answer(b'{"error": {"message": "overloaded"}}', 500),
    "too many requests": lambda conversation: conversation.answer(b'{"message": "slow down"}', 429),
    "not JSON": lambda conversation: conversation.answer(bytes(range(256))),
    "JSON of something else": lambda conversation: conversation.answer(b'{"choices": [], "output": {}}'),
    "nothing": lambda conversation: conversation.answer(b""),
    "half an answer": lambda conversation: conversation.answer(b'{"choices": [', length=1000),
    "no connection": lambda conversation: conversation.connection.close(),
    "empty words": reply_with(" \n"),
    "too many words": reply_with("x" * (256 * 1024 + 1)),
    "words that are not text": reply_with("\ud800"),
}
SLOW: Final[dict[str, Behaviour]] = {"silence": _silence, "a trickle": _trickle}
