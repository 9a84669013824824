"""IoT Core's data-plane API over HTTP, as used by boto3's `iot-data` client."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from infra.local.iot.broker.broker import DataPlaneError
from infra.local.iot.broker.messages import BrokerMessage
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from infra.local.iot.broker.broker import Broker

_MAX_BODY_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class _Request:
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def require_only(self, *parameters: str) -> None:
        """Raise DataPlaneError if the request asks for anything else, such as properties of MQTT 5."""
        properties = (name for name in self.headers if name.startswith("x-amz-mqtt5-"))
        for name in (*self.query, *properties):
            if name not in parameters and self.query.get(name) != "false":
                raise DataPlaneError("InvalidRequestException", f"The local data plane does not support {name}")


class DataPlaneApp:
    """An ASGI application under an unguessable path, so that no web page in a local browser can use it."""

    def __init__(self, broker: Broker, token: str) -> None:
        self._broker = broker
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return
        body, more = bytearray(), True
        while more and len(body) <= _MAX_BODY_BYTES:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        status, kind, response = await self._respond(scope, bytes(body))
        content = compact(response).encode("utf-8")
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        if kind:
            headers.append((b"x-amzn-errortype", kind.encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _respond(self, scope: Scope, body: bytes) -> tuple[int, str, dict[str, Any]]:
        parts = [unquote(part) for part in scope["raw_path"].decode("latin-1").split("/")[1:]]
        if not parts or not secrets.compare_digest(parts[0].encode(), self._token.encode()):
            return 403, "ForbiddenException", {"message": "Forbidden"}
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        try:
            return 200, "", self._dispatch(scope["method"], parts[1:], _Request(query, headers, body))
        except DataPlaneError as error:
            return error.status, error.name, {"message": str(error), "traceId": secrets.token_hex(16)}

    def _dispatch(self, method: str, parts: list[str], request: _Request) -> dict[str, Any]:
        match method, parts:
            case "POST", ["connections", client_id, "messages"]:
                request.require_only("topic")
                self._broker.send_direct(client_id, BrokerMessage(request.query.get("topic", ""), request.body))
                return {"message": "OK", "traceId": secrets.token_hex(16)}
            case "GET", ["connections", client_id]:
                request.require_only()
                return self._get_connection(client_id)
            case "DELETE", ["connections", client_id]:
                self._broker.end_connection(client_id, prevent_will=request.query.get("preventWillMessage") == "true")
                return {}
            case "POST", ["topics", topic]:
                request.require_only("qos")
                message = BrokerMessage(topic, request.body)
                self._broker.check(message)
                self._broker.publish(message)
                return {"message": "OK", "traceId": secrets.token_hex(16)}
        raise DataPlaneError("ResourceNotFoundException", "The local data plane does not support this operation")

    def _get_connection(self, client_id: str) -> dict[str, Any]:
        record = self._broker.presence.find(client_id)
        if record is None:
            raise DataPlaneError("ResourceNotFoundException", "There is no such client")
        response: dict[str, Any] = {
            "clientId": record.client_id,
            "connected": record.reason is None,
            "cleanSession": True,
            "keepAliveDuration": record.keepalive,
        }
        if record.reason:
            return response | {"disconnectedSince": record.disconnected_at, "disconnectReason": record.reason.value}
        return response | {"connectedSince": record.connected_at}
