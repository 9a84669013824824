"""Redirect URIs of clients: those that may be registered, their comparison, and their origin."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_CHARACTERS: Final = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9._~:/?\[\]@!$&()*+,;=%-]+", re.ASCII)
_HOST: Final = re.compile(r"[a-z0-9.-]+|\[[0-9a-f:.]+\]", re.ASCII)
_MAX_LENGTH: Final = 1000
_LOOPBACK: Final = ("127.0.0.1", "[::1]", "localhost")
_REVERSE_DOMAIN: Final = re.compile(r"(?!microsoft\.)[a-z]{2,}(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+", re.ASCII)
"""An application's own scheme, such as com.example.app (RFC 8252, section 7.1). Windows has microsoft.* for itself."""
KNOWN_SCHEMES: Final = frozenset(
    (
        "antigravity",
        "claude",
        "code-oss",
        "codex",
        "cursor",
        "kiro",
        "raycast",
        "trae",
        "vscode",
        "vscode-insiders",
        "vscodium",
        "warp",
        "windsurf",
        "zed",
    )
)
"""The schemes without a dot that MCP clients use. Others open a telephone, a shell or a program of the system."""


def is_redirect_uri(uri: str) -> bool:
    """Return True for https, http on loopback, and schemes of applications; without fragment and user name."""
    parts = _split(uri)
    if parts is None or len(uri) > _MAX_LENGTH or "#" in uri or "@" in parts.netloc:
        return False
    if parts.scheme == "https":
        return bool(_HOST.fullmatch(_host(parts)))
    if parts.scheme == "http":
        return _host(parts) in _LOOPBACK
    if parts.scheme in KNOWN_SCHEMES:
        return bool(parts.netloc)  # without a host, an editor takes it for a command, such as vscode:mcp/install
    return bool(_REVERSE_DOMAIN.fullmatch(parts.scheme))


def matches(registered: str, presented: str) -> bool:
    """Compare exactly, a loopback address's port excepted (RFC 8252, section 7.3).

    An address that may not be registered any more matches nothing, not even itself.
    """
    if not is_redirect_uri(presented):
        return False
    if registered == presented:
        return True
    first, second = _split(registered), _split(presented)
    if first is None or second is None:
        return False
    is_loopback = first.scheme == "http" and _host(first) in _LOOPBACK
    return is_loopback and first._replace(netloc=_host(first)) == second._replace(netloc=_host(second))


def host_of(uri: str) -> str:
    """Return the host as people should see it, or the scheme of an application."""
    parts = urlsplit(uri)
    return parts.netloc if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def source_of(uri: str) -> str:
    """Return the source expression of a Content-Security-Policy that allows this URI."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or "[" in parts.netloc:
        return f"{parts.scheme}:"  # the policy's grammar has no IPv6 addresses
    return f"{parts.scheme}://{parts.netloc}"


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts if _CHARACTERS.fullmatch(uri) else None


def _host(parts: SplitResult) -> str:
    return re.sub(r":\d*$", "", parts.netloc)
