"""Answers to messages of the handshake revisions, made by the SDK's kernel without the streams of its transport.

The SDK's transport for these revisions starts nine tasks and five streams a request, for replies and streams that a
stateless server never has. Notifications of a running tool are collected and sent before the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.types import Scope, Send

from api.mcp_errors import error_record, is_handshake, with_data
from api.mcp_sdk import (
    DEFAULT_NEGOTIATED_VERSION,
    CallOptions,
    Connection,
    MCPError,
    NoBackChannelError,
    ProgressToken,
    RequestId,
    Server,
    ServerMessageMetadata,
    TransportContext,
    progress_token_from_params,
    serve_one,
)
from shared.rpc.errors import InvalidRequest
from shared.rpc.strict_json import compact

_REVISION: Final = "mcp-protocol-version"
_JSON: Final = ("application/json", "application/*", "*/*")
_STREAM: Final = ("text/event-stream", "text/*", "*/*")


@dataclass
class _DispatchContext:
    """The SDK's dispatch context of one request: handlers can send notifications, but no requests."""

    transport: TransportContext
    request_id: RequestId
    message_metadata: ServerMessageMetadata
    progress_token: ProgressToken | None
    notifications: list[dict[str, Any]] = field(default_factory=list)
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(
        self, method: str, _params: Mapping[str, Any] | None, _opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None) -> None:
        self.notifications.append({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self.progress_token is not None:
            params = {"progressToken": self.progress_token, "progress": progress, "total": total, "message": message}
            await self.notify("notifications/progress", {key: each for key, each in params.items() if each is not None})


def uses_handshake_revision(scope: Scope) -> bool:
    """Return True if the request is of a revision with a handshake."""
    return is_handshake(Request(scope).headers.get(_REVISION, DEFAULT_NEGOTIATED_VERSION))


async def serve_handshake_message(server: Server[Any], scope: Scope, message: Mapping[str, Any], send: Send) -> None:
    """Answer `message` as JSON, or as a stream of events if there are notifications before the answer."""
    if "method" not in message or "id" not in message:
        # A notification, or an answer to no request: it needs no response.
        await _send(send, 202, "application/json", "")
        return
    request = Request(scope)
    accepted = [each.partition(";")[0].strip() for each in request.headers.get("accept", "*/*").lower().split(",")]
    accepts_json, accepts_stream = (any(each in kinds for each in accepted) for kinds in (_JSON, _STREAM))
    if not (accepts_json or accepts_stream):
        refusal = InvalidRequest(details={"reason": "the answer is JSON"}, guidance="Accept application/json.")
        await _send(
            send,
            406,
            "application/json",
            compact({"jsonrpc": "2.0", "error": error_record(refusal), "id": message["id"]}),
        )
        return
    params = message.get("params")
    context = _DispatchContext(
        transport=TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers),
        request_id=message["id"],
        message_metadata=ServerMessageMetadata(request_context=request),
        progress_token=progress_token_from_params(params),
    )
    connection = Connection.from_envelope(request.headers.get(_REVISION, DEFAULT_NEGOTIATED_VERSION), None, None)
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        answer["result"] = await serve_one(
            server, context, message["method"], params, connection=connection, lifespan_state={}
        )
    except MCPError as error:
        answer["error"] = with_data(error.error.model_dump(by_alias=True, exclude_none=True))
    if accepts_stream and (context.notifications or not accepts_json):
        events = (f"event: message\r\ndata: {compact(each)}\r\n\r\n" for each in (*context.notifications, answer))
        await _send(send, 200, "text/event-stream", "".join(events))
    else:
        await _send(send, 200, "application/json", compact(answer))


async def _send(send: Send, status: int, content_type: str, body: str) -> None:
    headers = [(b"content-type", content_type.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode("utf-8")})
