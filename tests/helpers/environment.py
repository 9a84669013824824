"""The environment before any test set up a store in this process, for commands that tests start."""

from __future__ import annotations

import os
from typing import Final

ORIGINAL_ENVIRONMENT: Final = dict(os.environ)
