"""The data folder of one machine: one server at a time, and where it can be reached."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SERVING: Final = "serving.json"


class ServerInfo(TypedDict):
    """Where a running server's parts can be reached."""

    pid: int
    address: str
    store_url: str
    mqtt_url: str
    mqtt_token: str
    data_plane_url: str


class DataFolderInUse(Exception):
    """Another server is using this folder."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Have the folder to oneself; the lock goes with the process, however it ends."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise DataFolderInUse(f"{folder} is a file, not a folder") from None
    with (folder / "lock").open("w") as lock:
        _lock(lock.fileno(), folder)
        # Left by a server that was killed, it would lead to what is no longer there.
        (folder / _SERVING).unlink(missing_ok=True)
        try:
            yield
        finally:
            (folder / _SERVING).unlink(missing_ok=True)


def write_server_info(folder: Path, serving: ServerInfo) -> None:
    """Tell other commands on this machine where the server's parts are."""
    file = folder / _SERVING
    file.touch(mode=0o600)
    file.write_text(json.dumps(serving))


def read_server_info(folder: Path) -> ServerInfo | None:
    """Where the folder's running server can be reached, if there is one."""
    try:
        with lock_folder(folder):
            return None
    except DataFolderInUse:
        try:
            found: ServerInfo = json.loads((folder / _SERVING).read_text())
        except FileNotFoundError:
            raise DataFolderInUse(f"another command is starting in {folder}; try again in a moment") from None
        return found


def _lock(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no such locks; there the store's own must do
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataFolderInUse(f"another kho serve is using {folder}") from None
