"""One event per function, as `sam local invoke <function> -e tests/events/<name>.json` takes it.

`make generate` writes those of methods; those of endpoints and workers are written by hand. All use one tenant.
`make rie` sends each to its function, on data that it prepares.
"""

from __future__ import annotations

from typing import Final

from infra.deploy.sample_events import FOLDER, KEY, TENANT

__all__ = ["FOLDER", "KEY", "TENANT"]

DEVICE: Final = "kitchen"
OLD_DEVICE: Final = "old-lamp"
CAMERA: Final = "porch"
CAMERA_TOKEN: Final = f"{CAMERA}.{'0' * 43}"
"""The token for photos in the session of a device with a camera."""
CODE: Final = "482913"
"""The code of a board that waits to be claimed."""
PASSWORD: Final = "0" * 64
REFRESH_TOKEN: Final = f"khor_YWNtZQ.{'0' * 16}.{'0' * 43}"
"""A refresh token of the tenant, which no deployment has."""


def event(function: str) -> bytes:
    """Return the event of a function."""
    return (FOLDER / f"{function}.json").read_bytes()
