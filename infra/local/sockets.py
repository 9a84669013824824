"""Listening sockets, bound before anything else is started, and the number of open ones."""

import socket
from typing import Final

_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
_ELSEWHERE: Final = ("192.0.2.1", 9)
"""An address of no machine (RFC 5737), by which the system chooses its network interface."""


def listen(host: str, port: int) -> socket.socket:
    """Bind and listen. Raise OSError if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm, which delays responses by 40 ms, only if the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    listener.settimeout(0)
    return listener


def address_of(listener: socket.socket, scheme: str = "http") -> str:
    """Return the URL of the listener."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def network_address_of(listener: socket.socket) -> str:
    """Return the URL by which other machines of the network reach the listener by IPv4, or '' if there is none."""
    host, port = listener.getsockname()[:2]
    if host in _ANY_ADDRESS:
        host = _own_address()
    return f"http://{host}:{port}" if host and ":" not in host else ""


def _own_address() -> str:
    """Return this machine's IPv4 address on the interface of its default route, or ''. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ELSEWHERE)
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
        return address


def raise_open_files() -> None:
    """Raise the limit of open files to 65,536 or the system's hard limit. Each device's connection is one file."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
