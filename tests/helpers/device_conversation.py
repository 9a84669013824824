"""The backend's side of the conversation with one simulated device."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.helpers.mqtt_client import send_direct_message
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    import queue
    from collections.abc import Iterator

    from infra.local.iot.broker.messages import BrokerMessage
    from infra.local.iot.simulator.device import SimulatedDevice
    from infra.local.iot.simulator.fleet import Fleet
    from tests.helpers.mqtt_client import EmbeddedBroker


@dataclass
class DeviceConversation:
    """One device and the backend's side of the conversation with it, message by message."""

    served: EmbeddedBroker
    fleet: Fleet
    heard: queue.Queue[BrokerMessage]
    ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def device(self) -> SimulatedDevice:
        return self.fleet.devices[0]

    def send(self, envelope: Any) -> None:
        """Send the device a complete message."""
        payload = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
        device_id = self.device.device_id
        send_direct_message(self.served.broker, device_id, f"devices/{device_id}/down", payload)

    def ask(self, method: str, request_id: Any = None, **params: Any) -> Any:
        """Send a request and return its id."""
        request_id = next(self.ids) if request_id is None else request_id
        payload = {"jsonrpc": "2.0", "method": method, "params": params, "id": request_id}
        self.send({"session_id": "s", "type": "mcp", "payload": payload})
        return request_id

    def raw(self) -> bytes:
        """Return the device's next message as received."""
        return self.heard.get(timeout=CEILING_SECONDS).payload

    def reply(self) -> Any:
        """Return the JSON-RPC message in the device's next message."""
        envelope = json.loads(self.raw())
        assert envelope["type"] == "mcp"
        return envelope["payload"]

    def call(self, name: str, **arguments: Any) -> Any:
        """Return the device's reply to a call."""
        request_id = self.ask("tools/call", name=name, arguments=arguments)
        reply = self.reply()
        assert reply["id"] == request_id
        return reply


def listed_tool_names(it: DeviceConversation, **params: Any) -> list[list[str]]:
    """Return the tool names on each page of the device's list."""
    pages, cursor = [], ""
    while True:
        it.ask("tools/list", cursor=cursor, **params)
        result = it.reply()["result"]
        pages.append([tool["name"] for tool in result["tools"]])
        cursor = result.get("nextCursor", "")
        if not cursor:
            return pages
