"""A receiver of webhooks at a public address, as functions see it, and its verification of signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from shared.devices.webhooks import LIMITS
from shared.platform.public_address import PublicClient
from tests.helpers.certificates import certify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOST = "hooks.example"
URL = f"https://{HOST}/kho"
PUBLIC = "93.184.215.14"


@dataclass
class WebhookReceiver:
    """A server that records what it accepts."""

    client: PublicClient = field(init=False)
    address: tuple[str, int] = ("", 0)
    received: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    attempts: int = 0
    is_down: bool = False
    status: Callable[[dict[str, Any]], int] = lambda _event: 204
    on_event: Callable[[dict[str, Any]], None] = lambda _event: None

    def connect(self, _address: tuple[str, int], seconds: float) -> socket.socket:
        """Connect to the receiver, wherever the client wanted to."""
        self.attempts += 1
        if self.is_down:
            raise ConnectionRefusedError
        return socket.create_connection(self.address, seconds)

    def events(self, device_id: str = "") -> list[dict[str, Any]]:
        """Return the accepted events, of one device or of all."""
        return [each for each in self.received if device_id in ("", each["data"].get("device_id"))]

    def verify(self, number: int, secret: str) -> None:
        """Verify the signature of an accepted request as a library of Standard Webhooks does."""
        headers, body = self.headers[number], self.bodies[number]
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{signature}"


@contextmanager
def webhook_receiver(folder: Path, host: str = HOST) -> Iterator[WebhookReceiver]:
    """Run a receiver on loopback."""
    receiver = WebhookReceiver()
    certificate = certify(host, folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            event = json.loads(body)
            receiver.on_event(event)
            status = receiver.status(event)
            if 200 <= status < 300:
                receiver.received.append(event)
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                receiver.bodies.append(body)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", f"https://{host}/other")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = certificate.serving().wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    receiver.address = server.server_address[:2]  # type: ignore[assignment] # of IPv4
    trusting = ssl.create_default_context(cafile=certificate.authority)
    receiver.client = PublicClient(LIMITS, lambda _host, _port: [PUBLIC], receiver.connect, trusting)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
