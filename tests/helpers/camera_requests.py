"""Photos as events of the gateway, and devices whose sessions have a token for them."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from boards import explain_photo as vision
from infra.local.iot.simulator.camera import Camera
from shared.devices.registry import devices_table, registry
from shared.devices.sessions import DeviceSession, SessionStore
from shared.devices.vision import vision_offer
from shared.platform.clock import now_ms

PHOTO: Final = b"\xff\xd8\xff\xe0" + b"a photo\r\n--" * 100
QUESTION: Final = "Trên bàn có gì? \"quả bóng\" hay 'cốc'?"
FORM: Final = "multipart/form-data"
SESSION: Final = DeviceSession("s", "board", "2.4.2", 0, "")


def form(question: str = QUESTION, photo: bytes = PHOTO) -> bytes:
    """Return the form that firmware sends."""
    return b"".join(Camera(photo, "", "")._form(question))


class CameraDevice:
    """A registered device with a session of its own."""

    def __init__(self, tenant: str, **session: Any) -> None:
        self.device, _ = registry().register(tenant, f"camera-{uuid4().hex[:12]}")
        self.store = SessionStore(devices_table(), tenant, self.device.id)
        self.token = self.start(**session)

    def start(self, **session: Any) -> str:
        """Start a session and return its token."""
        offer = vision_offer(self.device)
        assert offer
        self.claim_session(replace(SESSION, started_at=now_ms(), vision_hash=offer.token_hash, **session))
        return offer.token

    def claim_session(self, session: DeviceSession) -> None:
        """Store a session."""
        claimant = secrets.token_hex(8)
        assert self.store.claim(claimant, 60)
        assert self.store.start(claimant, session)

    def send(self, question: str = QUESTION, photo: bytes = PHOTO, **options: Any) -> tuple[int, Any]:
        """Return the status and the content of the answer to a photo."""
        return send(self.token, form(question, photo), **options)


def fresh_address() -> str:
    """Return an address that no request came from."""
    return f"2001:db8:{secrets.randbelow(1 << 16):x}:{secrets.randbelow(1 << 16):x}::1"


def photo_event(token: str | None, body: bytes, content_type: str = "", source: str = "198.51.100.2") -> dict[str, Any]:
    """Return the gateway's event of a photo."""
    usual = f"{FORM}; boundary=----ESP32_CAMERA_BOUNDARY"
    headers = {"content-type": content_type or usual, "transfer-encoding": "chunked"}
    return {
        "rawPath": "/vision/explain",
        "headers": headers | ({"authorization": f"Bearer {token}"} if token is not None else {}),
        "body": base64.b64encode(body).decode(),
        "isBase64Encoded": True,
        "requestContext": {"http": {"method": "POST", "sourceIp": source}, "requestId": "vision-test"},
    }


def send(token: str | None, body: bytes, **options: Any) -> tuple[int, Any]:
    """Return the status and the content of an answer, which has fewer bytes than firmware takes."""
    answer = vision.handler(photo_event(token, body, **options), None)
    lines = sum(len(f"{name}: {value}\r\n") for name, value in answer["headers"].items())
    assert len(answer["body"].encode()) + lines < 4_000
    return answer["statusCode"], json.loads(answer["body"])
