"""The offer that `initialize` makes to a device's camera: where to send photos, and a token for this session.

A token is `{device id}.{random}`. The session stores the hash of its own token, so a token is valid while its device is
registered and its session is the current one. A session with a token is renewed before the token expires.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from shared.aws.secrets_manager import get_secret
from shared.devices.registry import devices_table, registry
from shared.devices.sessions import SessionStore
from shared.platform.clock import now_ms
from shared.platform.config import config
from shared.rpc.errors import NotSignedIn, Unavailable

if TYPE_CHECKING:
    from shared.devices.registry import RegisteredDevice
    from shared.devices.sessions import DeviceState

PATH: Final = "/vision/explain"
TOKEN_MS: Final = 86_400_000
"""The longest life of a token, a day."""


@dataclass(frozen=True, slots=True)
class VisionOffer:
    """The address to which a device sends photos, and its token there."""

    url: str
    token: str = field(repr=False)
    token_hash: str = ""
    """The hash of a token that the session stores. Empty for the token of the operator's own service."""

    def capabilities(self) -> dict[str, dict[str, str]]:
        """Return the offer as `initialize` announces it."""
        return {"vision": {"url": self.url, "token": self.token}}


def vision_offer(device: RegisteredDevice) -> VisionOffer | None:
    """Return the offer to a device, or None if no service explains photos, or no address of it is known.

    The service is the operator's own, if there is one, else Kho with its language model.
    """
    settings = config()
    if settings.vision_url:
        try:
            return VisionOffer(settings.vision_url, get_secret("KHO_VISION_TOKEN"))
        except Unavailable:
            return None  # calls work without it; cameras get the address in a later session
    address = settings.board_url or settings.public_url
    if not address or settings.model_provider == "none":
        return None
    token = f"{device.id}.{secrets.token_urlsafe(32)}"
    return VisionOffer(f"{address}{PATH}", token, _hash(token))


def require_camera(authorization: str) -> RegisteredDevice:
    """Return the device whose current session has the token of this header. Raise NotSignedIn if there is none."""
    scheme, _, token = authorization.strip().partition(" ")
    device_id, _, _ = token.rpartition(".")
    device = registry().find_any_tenant(device_id) if scheme.lower() == "bearer" else None
    if device is None or device.revoked_at:
        raise _refused()
    state = SessionStore(devices_table(), device.tenant_id, device.id).read()
    if not _is_valid(state, _hash(token)):
        raise _refused()
    return device


def _is_valid(state: DeviceState, token_hash: str) -> bool:
    session, presence = state.session, state.presence
    if session is None or not session.vision_hash or not state.ready or (presence and not presence.connected):
        return False
    return hmac.compare_digest(session.vision_hash, token_hash) and now_ms() - session.started_at < TOKEN_MS


def _refused() -> NotSignedIn:
    return NotSignedIn(
        "No device has this token in its current session.", guidance="'initialize' gives the device a token."
    )


def _hash(token: str) -> str:
    # The token is random and long, so a plain hash cannot be reversed or guessed.
    return hashlib.sha256(token.encode()).hexdigest()
