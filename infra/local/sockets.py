"""Taking a port before anything else is started."""

from __future__ import annotations

import socket


def listen(host: str, port: int) -> socket.socket:
    """Take the port, or raise OSError where somebody else has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where the protocol is named does asyncio switch Nagle's algorithm off, which holds answers back for 40 ms.
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
    """Where the listener can be reached."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
