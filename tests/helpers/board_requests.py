"""Check-ins of stock boards as events of the gateway."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from boards import check_in as ota
from shared.devices.boards import Board

BOARD_SETTINGS: Final = {
    "KHO_AUTH": "required",
    "KHO_DEVICE_SECRET": "a" * 64,
    "KHO_BOARD_ENDPOINT": "broker.example",
}
"""The settings of functions that serve boards."""


def random_address() -> str:
    """Return a hardware address."""
    return ":".join(f"{byte:02x}" for byte in secrets.token_bytes(6))


@dataclass
class BoardCaller:
    """A board that calls the function of `/ota/` in this process."""

    address: str = field(default_factory=random_address)
    client_id: str = field(default_factory=lambda: str(uuid4()))
    source: str = "198.51.100.1"
    host: str = "kho.example:8001"

    @property
    def board(self) -> Board:
        """Return the board's identity."""
        return Board.identify(self.address, self.client_id)

    def call(self, path: str = "/ota/", body: str = "{}", **headers: str) -> tuple[int, Any]:
        """Return status and content of the answer."""
        sent = {"device-id": self.address, "client-id": self.client_id, "host": self.host} | headers
        context = {"http": {"method": "POST", "sourceIp": self.source}, "requestId": "board-test"}
        event = {"rawPath": path, "headers": sent, "body": body, "requestContext": context}
        answer = ota.handler(event, None)
        return answer["statusCode"], json.loads(answer["body"])

    def check_in(self) -> Any:
        """Return the content of a check-in that succeeds."""
        status, content = self.call()
        assert status == 200, content
        return content

    def code(self) -> str:
        """Return the code that the board shows."""
        content = self.check_in()
        assert "mqtt" not in content
        code: str = content["activation"]["code"]
        return code

    def password(self) -> str:
        """Return the password that the board gets."""
        content = self.check_in()
        assert "activation" not in content
        password: str = content["mqtt"]["password"]
        return password
