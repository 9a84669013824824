"""IoT Core's data-plane API over HTTP, as used by boto3's `iot-data` client."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from infra.local.iot.broker.broker import SYSTEM
from infra.local.iot.broker.data_plane_errors import DataPlaneError
from infra.local.iot.broker.limits import fits
from infra.local.iot.broker.messages import BrokerMessage
from infra.local.iot.mqtt.properties import Properties
from infra.local.iot.mqtt.topics import is_topic
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from infra.local.iot.broker.broker import Broker

_MAX_BODY_BYTES: Final = 256 * 1024
_CONFIRM_SECONDS: Final = (1, 5, 15)
_PAGE_SIZE: Final = 20
_MAX_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class _Request:
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def flag(self, name: str) -> bool:
        """Return a boolean query parameter."""
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str, least: int, default: int, most: int) -> int:
        """Return an integer query parameter."""
        text = self.query.get(name, str(default))
        if not text.isdecimal() or len(text) > _MAX_DIGITS or not least <= int(text) <= most:
            raise DataPlaneError("InvalidRequestException", f"{name} must be between {least} and {most}")
        return int(text)

    def properties(self) -> Properties | None:
        """Return the MQTT 5 properties of the query and the headers."""
        properties = Properties(
            content_type=self.query.get("contentType"),
            response_topic=self.query.get("responseTopic"),
            message_expiry=self.number("messageExpiry", 0, 0, 2**32 - 1) if "messageExpiry" in self.query else None,
        )
        if properties.response_topic is not None and not is_topic(properties.response_topic):
            raise DataPlaneError("InvalidRequestException", "The response topic is not valid")
        match self.headers.get("x-amz-mqtt5-payload-format-indicator"):
            case "UTF8_DATA":
                properties.payload_format = True
            case "UNSPECIFIED_BYTES":
                properties.payload_format = False
        try:
            if "x-amz-mqtt5-correlation-data" in self.headers:
                properties.correlation_data = base64.b64decode(self.headers["x-amz-mqtt5-correlation-data"])
            if "x-amz-mqtt5-user-properties" in self.headers:
                items = json.loads(base64.b64decode(self.headers["x-amz-mqtt5-user-properties"]))
                if isinstance(items, str):  # boto3 encodes the JSON twice
                    items = json.loads(items)
                properties.user_properties = [(name, str(value)) for each in items for name, value in each.items()]
        except (binascii.Error, ValueError, TypeError, AttributeError):
            raise DataPlaneError(
                "InvalidRequestException", "User properties or correlation data are not encoded correctly"
            ) from None
        return properties if properties != Properties() else None


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
            return 200, "", await self._dispatch(scope["method"], parts[1:], _Request(query, headers, body))
        except DataPlaneError as error:
            return error.status, error.name, {"message": str(error), "traceId": secrets.token_hex(16)}

    async def _dispatch(self, method: str, parts: list[str], request: _Request) -> dict[str, Any]:
        match method, parts:
            case "POST", ["connections", client_id, "messages"]:
                return await self._send_direct_message(client_id, request)
            case "GET", ["connections", client_id]:
                return self._get_connection(client_id, request)
            case "DELETE", ["connections", client_id]:
                clean, prevent = request.flag("cleanSession"), request.flag("preventWillMessage")
                self._broker.end_connection(client_id, clean_session=clean, prevent_will=prevent)
                return {}
            case "GET", ["connections", client_id, "subscriptions"]:
                return self._list_subscriptions(client_id, request)
            case "POST", ["topics", topic]:
                return self._publish(topic, request)
            case "GET", ["retainedMessage", topic]:
                return self._get_retained(topic)
        raise DataPlaneError("ResourceNotFoundException", "The local data plane does not support this operation")

    async def _send_direct_message(self, client_id: str, request: _Request) -> dict[str, Any]:
        topic = request.query.get("topic", "")
        message = BrokerMessage(topic, request.body, properties=request.properties(), sender=SYSTEM)
        if request.flag("confirmation"):
            seconds = request.number("timeout", *_CONFIRM_SECONDS)
            await self._broker.confirm_direct(client_id, message, seconds)
        else:
            self._broker.send_direct(client_id, message)
        return {"message": "OK", "traceId": secrets.token_hex(16)}

    def _get_connection(self, client_id: str, request: _Request) -> dict[str, Any]:
        record = self._broker.presence_record(client_id)
        if record is None:
            raise DataPlaneError("ResourceNotFoundException", "There is no such client")
        response: dict[str, Any] = {
            "clientId": record.client_id,
            "connected": record.connected,
            "cleanSession": record.clean_session,
            "keepAliveDuration": record.keepalive,
            "sessionExpiry": record.session_expiry,
        }
        if record.reason:
            response |= {"disconnectedSince": record.disconnected_at, "disconnectReason": record.reason.value}
        else:
            response["connectedSince"] = record.connected_at
        if request.flag("includeSocketInformation"):
            response |= dict(zip(("sourceIp", "sourcePort"), record.peer, strict=True))
            response |= dict(zip(("targetIp", "targetPort"), record.local, strict=True))
        return response

    def _list_subscriptions(self, client_id: str, request: _Request) -> dict[str, Any]:
        subscriptions = self._broker.subscriptions(client_id)
        if subscriptions is None:
            raise DataPlaneError("ResourceNotFoundException", "There is no such client")
        size = request.number("maxResults", 1, _PAGE_SIZE, 200)
        start = request.number("nextToken", 0, 0, len(subscriptions))
        page = [{"topicFilter": each.topic_filter, "qos": each.qos} for each in subscriptions[start : start + size]]
        response: dict[str, Any] = {"subscriptions": page}
        if start + size < len(subscriptions):
            response["nextToken"] = str(start + size)
        return response

    def _publish(self, topic: str, request: _Request) -> dict[str, Any]:
        limits = self._broker.limits
        if not is_topic(topic) or topic.startswith("$") or not fits(limits, topic):
            raise DataPlaneError("InvalidRequestException", "The topic is not valid")
        if len(request.body) > limits.payload_bytes:
            raise DataPlaneError("RequestEntityTooLargeException", "The payload exceeds the maximum size allowed")
        qos, retain = request.number("qos", 0, 0, 1), request.flag("retain")
        self._broker.publish(BrokerMessage(topic, request.body, qos, retain, request.properties(), SYSTEM))
        return {"message": "OK", "traceId": secrets.token_hex(16)}

    def _get_retained(self, topic: str) -> dict[str, Any]:
        message = self._broker.retained(topic)
        if message is None:
            raise DataPlaneError("ResourceNotFoundException", "There is no retained message on this topic")
        return {"topic": topic, "payload": base64.b64encode(message.payload).decode("ascii"), "qos": message.qos}
