"""IoT Core's data plane over HTTP: what boto3's `iot-data` client asks, answered by this machine's broker."""

from __future__ import annotations

import base64
import binascii
import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from infra.local.broker.broker import SYSTEM
from infra.local.broker.direct_message import (
    ClientBusy,
    ClientNotConnected,
    DeliveryUnconfirmed,
    DirectMessageError,
    DirectMessageNotAllowed,
    DirectMessageTooLarge,
    InvalidDirectMessage,
)
from infra.local.broker.limits import fits
from infra.local.broker.messages import BrokerMessage
from infra.local.mqtt.properties import Properties
from infra.local.mqtt.topics import is_topic
from shared.rpc.strict_json import compact

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from infra.local.broker.broker import Broker

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_MAX_BODY_BYTES: Final = 256 * 1024
_CONFIRM_SECONDS: Final = (1, 5, 15)
_PAGE: Final = 20
_STATUS: Final[dict[type[DirectMessageError], tuple[int, str]]] = {
    InvalidDirectMessage: (400, "InvalidRequestException"),
    DirectMessageNotAllowed: (403, "ForbiddenException"),
    ClientNotConnected: (404, "ResourceNotFoundException"),
    DirectMessageTooLarge: (413, "RequestEntityTooLargeException"),
    ClientBusy: (429, "ThrottlingException"),
    DeliveryUnconfirmed: (504, "GatewayTimeoutException"),
}


@dataclass(frozen=True, slots=True)
class _Request:
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def flag(self, name: str) -> bool:
        """A boolean of the query, as the SDKs and the documentation write it."""
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str, least: int, default: int, most: int) -> int:
        """A whole number of the query."""
        given = self.query.get(name, str(default))
        if not given.isdecimal() or not least <= int(given) <= most:
            raise InvalidDirectMessage(f"{name} must be between {least} and {most}")
        return int(given)

    def properties(self) -> Properties | None:
        """The MQTT 5 properties that query and headers carry."""
        properties = Properties(
            content_type=self.query.get("contentType"),
            response_topic=self.query.get("responseTopic"),
            message_expiry=self.number("messageExpiry", 0, 0, 2**32 - 1) if "messageExpiry" in self.query else None,
        )
        if properties.response_topic is not None and not is_topic(properties.response_topic):
            raise InvalidDirectMessage("The response topic is not valid")
        match self.headers.get("x-amz-mqtt5-payload-format-indicator"):
            case "UTF8_DATA":
                properties.payload_format = True
            case "UNSPECIFIED_BYTES":
                properties.payload_format = False
        try:
            if "x-amz-mqtt5-correlation-data" in self.headers:
                properties.correlation_data = base64.b64decode(self.headers["x-amz-mqtt5-correlation-data"])
            if "x-amz-mqtt5-user-properties" in self.headers:
                given = json.loads(base64.b64decode(self.headers["x-amz-mqtt5-user-properties"]))
                if isinstance(given, str):  # boto3 encodes once more what is JSON already
                    given = json.loads(given)
                properties.user_properties = [(name, str(said)) for each in given for name, said in each.items()]
        except (binascii.Error, ValueError, TypeError, AttributeError):
            raise InvalidDirectMessage("User properties or correlation data are not encoded as they must be") from None
        return properties if properties != Properties() else None


class DataPlaneApp:
    """An ASGI application under a path that nobody can guess, so that no page in a browser here reaches it."""

    def __init__(self, broker: Broker, token: str) -> None:
        self._broker = broker
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        body = b""
        more = True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
            if len(body) > _MAX_BODY_BYTES:
                break
        status, kind, answer = await self._answer(scope, body)
        content = compact(answer).encode("utf-8")
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        if kind:
            headers.append((b"x-amzn-errortype", kind.encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _answer(self, scope: Scope, body: bytes) -> tuple[int, str, dict[str, Any]]:
        parts = [unquote(part) for part in scope["raw_path"].decode("latin-1").split("/")[1:]]
        if not parts or not secrets.compare_digest(parts[0].encode(), self._token.encode()):
            return 403, "ForbiddenException", {"message": "Forbidden"}
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        try:
            return 200, "", await self._do(scope["method"], parts[1:], _Request(query, headers, body))
        except DirectMessageError as error:
            status, kind = _STATUS[type(error)]
            return status, kind, {"message": str(error), "traceId": secrets.token_hex(16)}

    async def _do(self, method: str, parts: list[str], request: _Request) -> dict[str, Any]:
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
        raise ClientNotConnected("One machine does not know this operation")

    async def _send_direct_message(self, client_id: str, request: _Request) -> dict[str, Any]:
        message = BrokerMessage(
            request.query.get("topic", ""), request.body, properties=request.properties(), sender=SYSTEM
        )
        if request.flag("confirmation"):
            seconds = request.number("timeout", *_CONFIRM_SECONDS)
            await self._broker.confirm_direct(client_id, message, seconds)
        else:
            self._broker.send_direct(client_id, message)
        return {"message": "OK", "traceId": secrets.token_hex(16)}

    def _get_connection(self, client_id: str, request: _Request) -> dict[str, Any]:
        visit = self._broker.visit(client_id)
        if visit is None:
            raise ClientNotConnected("There is no such client")
        answer: dict[str, Any] = {
            "clientId": visit.client_id,
            "connected": visit.connected,
            "cleanSession": visit.clean_session,
            "keepAliveDuration": visit.keepalive,
            "sessionExpiry": visit.session_expiry,
        }
        if visit.leaving:
            answer |= {"disconnectedSince": visit.disconnected_at, "disconnectReason": visit.leaving.value}
        else:
            answer["connectedSince"] = visit.connected_at
        if request.flag("includeSocketInformation"):
            (answer["sourceIp"], answer["sourcePort"]), (answer["targetIp"], answer["targetPort"]) = (
                visit.peer,
                visit.local,
            )
        return answer

    def _list_subscriptions(self, client_id: str, request: _Request) -> dict[str, Any]:
        found = self._broker.subscriptions(client_id)
        if found is None:
            raise ClientNotConnected("There is no such client")
        size, start = request.number("maxResults", 1, _PAGE, 200), request.number("nextToken", 0, 0, len(found))
        page = found[start : start + size]
        answer: dict[str, Any] = {
            "subscriptions": [{"topicFilter": each.topic_filter, "qos": each.qos} for each in page]
        }
        if start + size < len(found):
            answer["nextToken"] = str(start + size)
        return answer

    def _publish(self, topic: str, request: _Request) -> dict[str, Any]:
        limits = self._broker.limits
        if not is_topic(topic) or topic.startswith("$") or not fits(limits, topic):
            raise InvalidDirectMessage("The topic is not valid")
        if len(request.body) > limits.payload_bytes:
            raise DirectMessageTooLarge("The payload exceeds the maximum size allowed")
        qos, retain = request.number("qos", 0, 0, 1), request.flag("retain")
        self._broker.publish(BrokerMessage(topic, request.body, qos, retain, request.properties(), SYSTEM))
        return {"message": "OK", "traceId": secrets.token_hex(16)}

    def _get_retained(self, topic: str) -> dict[str, Any]:
        message = self._broker.retained(topic)
        if message is None:
            raise ClientNotConnected("There is no retained message on this topic")
        return {"topic": topic, "payload": base64.b64encode(message.payload).decode("ascii"), "qos": message.qos}
