"""The time to wait for a device's reply."""

from typing import Final

DEFAULT_TIMEOUT_MS: Final = 10_000
MAX_TIMEOUT_MS: Final = 25_000
"""The longest wait that ends before the request's own deadline, and the default at MCP endpoints."""
