"""The data folder of one machine: its lock, its access rights, and the addresses of the server that runs on it."""

import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, TypedDict

from platformdirs import user_data_path

from infra.installation import IS_CHECKOUT
from infra.local.free_space import reserve_released
from shared.platform.formats import INDEX_FORMAT, DataTooNew, format_record, require_known_format

DEFAULT_DATA: Final = Path(".kho") if IS_CHECKOUT else user_data_path("kho", appauthor=False)
"""A checkout keeps its data in the working folder, an installed wheel where the platform keeps users' data."""
_SERVER_INFO: Final = "serving.json"
_FORMAT_FILE: Final = "format.json"
_FORMAT: Final = 1
"""The format of the folder's files. Those of the tables and indexes in it have formats of their own."""
_POLL_SECONDS: Final = 0.1
_OWN_FILES: Final = ("dynamodb.sqlite", "kho.log")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class ServerInfo(TypedDict):
    """The addresses of a running server's parts."""

    pid: int
    address: str
    store_url: str
    mqtt_url: str
    mqtt_token: str
    data_plane_url: str
    board_url: str
    model_provider: str


class DataFolderError(Exception):
    """The data folder cannot be used."""


class DataFolderMissing(DataFolderError):
    """The data folder does not exist."""


class DataFolderInUse(DataFolderError):
    """Another process has locked the data folder."""


@contextmanager
def lock_folder(folder: Path, *, create: bool = True) -> Iterator[None]:
    """Lock the folder for this process, which creates files for its user alone in the block.

    The operating system releases the lock when the process ends.
    """
    with _open_lock(folder, create=create) as lock:
        _lock(lock.fileno(), folder)
        mask = os.umask(_OTHERS)
        # A server that was killed left it behind.
        (folder / _SERVER_INFO).unlink(missing_ok=True)
        try:
            _require_known_formats(folder)
            yield
        finally:
            (folder / _SERVER_INFO).unlink(missing_ok=True)
            os.umask(mask)


def write_server_info(folder: Path, info: ServerInfo) -> None:
    """Store the server's addresses for other commands on this machine."""
    with reserve_released(folder):
        (folder / _SERVER_INFO).write_text(json.dumps(info))


def read_server_info(folder: Path, *, create: bool = True) -> ServerInfo | None:
    """Return the addresses of the server that runs on the folder, if there is one."""
    try:
        with lock_folder(folder, create=create):
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


def server_or_lock(
    folder: Path, stack: ExitStack, *, create: bool = True, wait_seconds: float = 0.0
) -> ServerInfo | None:
    """Return the server that runs on the folder. Without one, lock the folder until `stack` is closed.

    Raise an error if the folder does not exist, unless it may be created. Wait at most `wait_seconds` for another
    command that has locked it.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            if running := read_server_info(folder, create=create):
                return running
            stack.enter_context(lock_folder(folder))
        except DataFolderInUse:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return None


def _open_lock(folder: Path, *, create: bool) -> IO[str]:
    try:
        if create:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not folder.exists():
            raise DataFolderMissing(f"there is no data folder {folder}")
        if os.name == "posix" and folder.stat().st_mode & _OTHERS:
            _make_private(folder)
        return os.fdopen(os.open(folder / "lock", os.O_WRONLY | os.O_CREAT, 0o600), "w")
    except (FileExistsError, NotADirectoryError):
        raise DataFolderError(f"{folder} is a file, not a folder") from None
    except OSError as error:
        raise DataFolderError(f"{folder} cannot be used: {error.strerror}") from None


def _require_known_formats(folder: Path) -> None:
    """Refuse a folder of a newer program, whose files this one may damage. Record the format of another."""
    try:
        passages = folder / "passages"
        for index in (passages, passages / "experiences", passages / "messages"):
            require_known_format(f"The index {index}", _recorded_format(index / "space.json"), INDEX_FORMAT)
        file = folder / _FORMAT_FILE
        number = require_known_format(f"The data folder {folder}", _recorded_format(file), _FORMAT)
    except DataTooNew as error:
        raise DataFolderError(str(error)) from None
    if number < _FORMAT:
        with suppress(OSError):  # on a full disk, the next start records it
            file.write_text(json.dumps(format_record(_FORMAT)))


def _recorded_format(file: Path) -> dict[str, Any]:
    try:
        recorded = json.loads(file.read_bytes())
    except (OSError, ValueError):  # there is none, or it is damaged, which is found when it is used
        return {}
    return recorded if isinstance(recorded, dict) else {}


def _make_private(folder: Path) -> None:
    """Take the folder's access rights from other users. Refuse a folder of other files, whose users may need theirs."""
    if any(folder.iterdir()) and not any((folder / name).exists() for name in _OWN_FILES):
        raise DataFolderError(f"{folder} has other files, and other users can read it: make it private (chmod 700)")
    try:
        folder.chmod(0o700)
        with suppress(FileNotFoundError):  # a server that is running on it deletes files
            for file in folder.rglob("*"):
                if not file.is_symlink():
                    file.chmod(file.stat().st_mode & ~_OTHERS)
    except OSError as error:
        raise DataFolderError(f"{folder} cannot be made private to you: {error.strerror}") from None


def _lock(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows has no such locks; there the store's own lock protects the data
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataFolderInUse(f"another kho serve is using {folder}") from None
