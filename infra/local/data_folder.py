"""The data folder of one machine: its lock, and the addresses of the server that runs on it."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final, TypedDict

_SERVER_INFO: Final = "serving.json"
_POLL_SECONDS: Final = 0.1


class ServerInfo(TypedDict):
    """The addresses of a running server's parts."""

    pid: int
    address: str
    store_url: str
    mqtt_url: str
    mqtt_token: str
    data_plane_url: str


class DataFolderError(Exception):
    """The data folder cannot be used."""


class DataFolderInUse(DataFolderError):
    """Another process has locked the data folder."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder for this process. The operating system releases the lock when the process ends."""
    with _open_lock(folder) as lock:
        _lock(lock.fileno(), folder)
        # A server that was killed left it behind.
        (folder / _SERVER_INFO).unlink(missing_ok=True)
        try:
            yield
        finally:
            (folder / _SERVER_INFO).unlink(missing_ok=True)


def write_server_info(folder: Path, info: ServerInfo) -> None:
    """Store the server's addresses for other commands on this machine."""
    file = folder / _SERVER_INFO
    file.touch(mode=0o600)
    file.write_text(json.dumps(info))


def read_server_info(folder: Path) -> ServerInfo | None:
    """Return the addresses of the server that runs on the folder, if there is one."""
    try:
        with lock_folder(folder):
            return None
    except DataFolderInUse:
        try:
            info: ServerInfo = json.loads((folder / _SERVER_INFO).read_text())
        except (FileNotFoundError, ValueError):
            raise DataFolderInUse(f"another command is starting in {folder}; try again in a moment") from None
        return info


def running_server(folder: Path) -> ServerInfo | None:
    """Return the addresses of the server that runs on the folder, without creating the folder."""
    return read_server_info(folder.resolve()) if (folder / _SERVER_INFO).exists() else None


def server_or_lock(folder: Path, stack: ExitStack, *, wait_seconds: float = 0.0) -> ServerInfo | None:
    """Return the server that runs on the folder. Without one, lock the folder until `stack` is closed.

    Wait at most `wait_seconds` for another command that has locked it.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            if running := read_server_info(folder):
                return running
            stack.enter_context(lock_folder(folder))
        except DataFolderInUse:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return None


def _open_lock(folder: Path) -> IO[str]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return (folder / "lock").open("w")
    except FileExistsError:
        raise DataFolderError(f"{folder} is a file, not a folder") from None
    except OSError as error:
        raise DataFolderError(f"{folder} cannot be used: {error.strerror}") from None


def _lock(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no such locks; there the store's own lock protects the data
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataFolderInUse(f"another kho serve is using {folder}") from None
