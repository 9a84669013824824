"""The address by which boards reach the server."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from infra.local.sockets import listen, network_address_of


@pytest.mark.parametrize(
    ("host", "elsewhere", "reached"),
    [
        ("127.0.0.1", "127.0.0.2", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "255.255.255.255", ""),  # as without a network
        ("::1", "127.0.0.1", ""),
    ],
)
def test_boards_get_the_listeners_address_or_that_of_the_network_interface(
    monkeypatch: pytest.MonkeyPatch, host: str, elsewhere: str, reached: str
) -> None:
    monkeypatch.setattr("infra.local.sockets._ELSEWHERE", (elsewhere, 9))
    listener = listen(host, 0)
    with listener:
        address = network_address_of(listener)
        assert (urlsplit(address).hostname or "") == reached
        if reached:
            socket.create_connection((reached, urlsplit(address).port)).close()
