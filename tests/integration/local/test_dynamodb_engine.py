"""The embedded DynamoDB engine, which checks neither signatures nor origins: who can connect to it."""

from __future__ import annotations

import os
import platform
import socket
import stat
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from infra.local import dynamodb, serve, store, store_namespace
from infra.local.dynamodb import Engine, connect
from infra.local.store import start_engine
from infra.local.template import load
from tests.helpers.wait import until


def _engine(folder: Path, *, private: bool) -> closing[Engine]:
    folder.mkdir(parents=True, exist_ok=True)
    return closing(Engine(folder / "dynamodb.sqlite", folder / "store.log", private=private))


def test_engine_without_a_namespace_listens_only_on_a_random_loopback_address(tmp_path: Path) -> None:
    with _engine(tmp_path / "a", private=False) as engine, _engine(tmp_path / "b", private=False) as other:
        with connect(engine.url) as client:
            client.list_tables()
        address = urlsplit(engine.url)
        assert address.hostname != urlsplit(other.url).hostname
        assert str(address.hostname).startswith("127.")
        for host in ("127.0.0.1", "::1"):
            with pytest.raises(ConnectionRefusedError), socket.create_connection((host, address.port or 0)):
                pass


def test_private_engine_is_reached_by_its_socket_alone(tmp_path: Path) -> None:
    with _engine(tmp_path / ("x" * 150), private=True) as engine:
        assert engine.is_private is _can_create_namespaces()
        with connect(engine.url) as client:
            assert client.list_tables()["TableNames"] == []
        if engine.is_private:
            with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", store_namespace.PORT)):
                pass
            file = Path(urlsplit(engine.url).path)
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0


def test_private_engine_answers_after_a_crash(tmp_path: Path) -> None:
    with _engine(tmp_path, private=True) as engine, connect(engine.url) as client:
        client.list_tables()
        before = _children()
        os.kill(before[-1], 9)
        until(lambda: _children() not in ([], before))
        until(lambda: _answers(engine.url))


def _answers(url: str) -> bool:
    from botocore.exceptions import BotoCoreError

    try:
        with connect(url) as client:
            client.list_tables()
    except BotoCoreError:
        return False
    return True


def _children() -> list[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    children = [int(pid) for task in tasks for pid in task.read_text().split()]
    return sorted(pid for pid in children if b"dynoxide" in _command_line(pid))


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:  # it has ended since it was listed
        return b""


def _can_create_namespaces() -> bool:
    if platform.system() != "Linux":
        return False
    program = "import runpy, sys; module = runpy.run_path(sys.argv[1]); module['_enter_namespace']()"
    command = [sys.executable, "-I", "-c", program, store_namespace.__file__]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_start_tells_that_other_users_can_connect_where_namespaces_are_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forbidding = tmp_path / "forbidding.py"
    forbidding.write_text(f"import sys; sys.exit({store_namespace.FORBIDDEN})")
    monkeypatch.setattr(store_namespace, "__file__", str(forbidding))
    with ExitStack() as stack:
        url = start_engine(stack, tmp_path)
        assert urlsplit(url).scheme == "http"
        with connect(url) as client:
            client.list_tables()
    assert "Programs of other users of this machine can connect to the embedded store" in capsys.readouterr().err


def test_platform_without_the_engine_serves_from_memory_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dynamodb, "DURABLE", False)
    table = load().tables[0]
    with ExitStack() as stack:
        url = start_engine(stack, tmp_path)
        dynamodb.create_tables(url, [table])
        with connect(url) as client:
            assert client.list_tables()["TableNames"] == [table.name]
    assert "Programs of other users of this machine can connect to the embedded store" in capsys.readouterr().err
    assert not (tmp_path / "dynamodb.sqlite").exists()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        serve._print_banner(listener, "mqtt://127.0.0.1:1883", tmp_path, authorizing=False, durable=False)
    assert "Data is NOT kept" in capsys.readouterr().out


def test_commands_refuse_a_platform_without_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "DURABLE", False)
    monkeypatch.setattr(store, "prepare", lambda *_, **__: None)
    with ExitStack() as stack, pytest.raises(store.StoreUnavailable, match="Start 'kho serve'"):
        store.open_store(stack, tmp_path, auth="open")
