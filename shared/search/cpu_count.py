"""The number of usable processor cores."""

import os
import sys


def cpu_count() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
