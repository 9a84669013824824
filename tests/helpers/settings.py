"""Settings that differ from the environment's."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from shared.platform.config import config

if TYPE_CHECKING:
    from shared.platform.config import Config


def changed_settings(**changes: Any) -> Config:
    """Return the settings of this process with these changes."""
    settings = copy(config())
    vars(settings).update(changes)
    return settings
