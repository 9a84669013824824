"""The address of the embedded DynamoDB engine, which checks neither signatures nor origins."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from infra.local.dynamodb import Engine, connect

if TYPE_CHECKING:
    from pathlib import Path


def test_engine_listens_only_on_a_random_loopback_address(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "dynamodb.sqlite", tmp_path / "store.log")
    other = Engine(tmp_path / "other.sqlite", tmp_path / "store.log")
    try:
        with connect(engine.url) as client:
            client.list_tables()
        address = urlsplit(engine.url)
        assert address.hostname != urlsplit(other.url).hostname
        assert str(address.hostname).startswith("127.")
        for host in ("127.0.0.1", "::1"):
            with pytest.raises(ConnectionRefusedError), socket.create_connection((host, address.port or 0)):
                pass
    finally:
        engine.close()
        other.close()
