"""Passwords of claimed boards, derived from a secret, so that each check-in hands out the same one.

The setting holds secrets separated by spaces or lines. The first makes passwords, and each of them is accepted: a board
whose password is refused does not check in by itself, so a new secret is put before the old one.
"""

import hashlib
import hmac
from typing import Final

from shared.aws.secrets_manager import get_secret
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable

SETTING: Final = "KHO_DEVICE_SECRET"


def board_password(device_id: str, generation: int) -> str:
    """Return the password of this generation of a board's passwords."""
    return _derive(_secrets()[0], device_id, generation)


def is_board_password(password: bytes, device_id: str, generation: int) -> bool:
    """Return True if the password is of this generation and any of the secrets."""
    matches = [hmac.compare_digest(_derive(secret, device_id, generation).encode(), password) for secret in _secrets()]
    return any(matches)


def _derive(secret: str, device_id: str, generation: int) -> str:
    return hmac.new(secret.encode(), f"mqtt#{device_id}#{generation}".encode(), hashlib.sha256).hexdigest()


def _secrets() -> list[str]:
    secrets = get_secret(SETTING).split()
    if not secrets:
        logger.error("no secret for the passwords of boards", extra={"setting": SETTING})
        raise Unavailable("Boards cannot be authenticated now.")
    return secrets
