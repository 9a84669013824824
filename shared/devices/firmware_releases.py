"""Firmware that a tenant offers to its boards: one release for each kind of board.

A board is offered a newer release at each check-in. Firmware does not report a failed update: the board checks in
with its old version again. After three failures the release is not offered to this board any more, until it is set
again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from shared.aws.dynamodb import ConditionFailed, Keys, Write, from_item, to_item
from shared.devices import keys
from shared.devices.registry import devices_table
from shared.platform.clock import now
from shared.platform.config import config
from shared.platform.regular_file import open_regular_file
from shared.rpc.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from io import FileIO
    from pathlib import Path

    from shared.aws.dynamodb import Table

    EventWrites = Callable[["UpdateOutcome"], Sequence[Write]]
    """Returns the writes that tell of an outcome, in the transaction that stores it."""

MAX_FAILURES: Final = 3
LOCAL_PREFIX: Final = "/firmware/"
"""The path of this machine's own files, which follows its address."""
FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_INT32_MAX: Final = 2**31 - 1
_MAX_USER_AGENT_CHARACTERS: Final = 256
_LEADING_NUMBER: Final = re.compile(r"[0-9]{1,10}(?![0-9])", re.ASCII)
_AUTHORITY: Final = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?", re.ASCII)

UpdateOutcome = Literal["installed", "failed"]


@dataclass(frozen=True, slots=True)
class FirmwareRelease:
    """The firmware for boards of a kind."""

    board: str
    version: str
    url: str
    set_at: str


@dataclass(frozen=True, slots=True)
class BoardUpdate:
    """A board that was offered a release."""

    device_id: str
    set_at: str
    """The time at which the release was set."""
    offers: int
    failed_at: str | None = None


@dataclass(frozen=True, slots=True)
class RunningFirmware:
    """The kind of a board that checks in, and the version that it runs."""

    board: str
    version: tuple[int, ...]

    @classmethod
    def identify(cls, user_agent: str) -> RunningFirmware | None:
        """Return the board of a check-in's User-Agent: `bread-compact-wifi/2.4.2`. Return None for any other."""
        if len(user_agent) > _MAX_USER_AGENT_CHARACTERS:
            return None
        board, _, version = user_agent.rpartition("/")
        numbers = [_LEADING_NUMBER.match(part) for part in version.split(".")]
        if not board or not all(numbers):
            return None
        return cls(board, tuple(int(each[0]) for each in numbers if each))


class FirmwareReleases:
    """The firmware of one tenant's boards."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id
        self._partition = keys.firmware(tenant_id)

    def set(self, board: str, version: str, url: str) -> FirmwareRelease:
        """Offer a release to the tenant's boards of a kind. Replace the former one, and forget its failures."""
        release = FirmwareRelease(board, version, url, now())
        self._table.write(Write("Put", {"pk": self._partition, "sk": board} | to_item(release)))
        self._table.delete_range(keys.updates(self._tenant_id, board), Keys.after(" "))
        return release

    def delete(self, board: str) -> FirmwareRelease:
        """Stop offering the release for a kind of board."""
        item = self._table.get(self._partition, board)
        if item is None:
            raise NotFound("No firmware is set for this board.", guidance="'firmware/list' lists the boards.")
        self._table.write(Write("Delete", {"pk": self._partition, "sk": board}))
        self._table.delete_range(keys.updates(self._tenant_id, board), Keys.after(" "))
        return from_item(FirmwareRelease, item)

    def after(self, board: str, limit: int) -> list[FirmwareRelease]:
        """Return at most `limit` releases, ordered by board, from the first one after `board`."""
        pages = self._table.query(self._partition, Keys.after(board or " "), limit=limit)
        return [from_item(FirmwareRelease, item) for page in pages for item in page]

    def failed(self, release: FirmwareRelease) -> Iterable[str]:
        """Return the ids of the boards that have failed to install the release."""
        for page in self._table.query(keys.updates(self._tenant_id, release.board), Keys.after(" ")):
            yield from (
                item["sk"] for item in page if item["set_at"] == release.set_at and item.get("failed_at") is not None
            )

    def offer(
        self, device_id: str, running: RunningFirmware, event_writes: EventWrites = lambda _outcome: ()
    ) -> tuple[FirmwareRelease | None, UpdateOutcome | None]:
        """Return the release that a board is offered now, and the outcome of former offers once it is known."""
        release, update = self._read(device_id, running.board)
        if release is None:
            return None, None
        if running.version >= parse_version(release.version):
            return None, self._finish(release, update, event_writes) if update else None
        offers = update.offers if update else 0
        if offers < MAX_FAILURES:
            self._store(release, BoardUpdate(device_id, release.set_at, offers + 1), offers)
            return release, None
        if update is None or update.failed_at:
            return None, None
        failed = BoardUpdate(device_id, release.set_at, offers, now())
        return None, "failed" if self._store(release, failed, offers, *event_writes("failed")) else None

    def _read(self, device_id: str, board: str) -> tuple[FirmwareRelease | None, BoardUpdate | None]:
        places = ((self._partition, board), (keys.updates(self._tenant_id, board), device_id))
        items = {item["pk"]: item for item in self._table.get_all(places)}
        release, update = (items.get(pk) for pk, _ in places)
        if release is None or update is None or update["set_at"] != release["set_at"]:
            update = None
        return (
            from_item(FirmwareRelease, release) if release else None,
            from_item(BoardUpdate, update | {"offers": int(update["offers"])}) if update else None,
        )

    def _finish(self, release: FirmwareRelease, update: BoardUpdate, event_writes: EventWrites) -> UpdateOutcome | None:
        key = {"pk": keys.updates(self._tenant_id, release.board), "sk": update.device_id}
        try:
            self._table.transact(Write("Delete", key, condition="attribute_exists(pk)"), *event_writes("installed"))
        except ConditionFailed:  # a check-in at the same time was faster
            return None
        return "installed"

    def _store(self, release: FirmwareRelease, update: BoardUpdate, offers: int, *events: Write) -> bool:
        """Store an update. Return False if a check-in at the same time was faster."""
        item = {"pk": keys.updates(self._tenant_id, release.board), "sk": update.device_id} | to_item(update)
        unchanged = "attribute_not_exists(pk) OR set_at <> :set_at"
        if offers:
            unchanged = "set_at = :set_at AND offers = :offers AND attribute_not_exists(failed_at)"
        values = {":set_at": release.set_at} | ({":offers": offers} if offers else {})
        try:
            self._table.transact(Write("Put", item, condition=unchanged, values=values), *events)
        except ConditionFailed:
            return False
        return True


def parse_version(version: str) -> tuple[int, ...]:
    """Return the numbers of a version of digits and dots. Of equal beginnings the longer version is newer."""
    return tuple(map(int, version.split(".")))


def version_problem(version: str) -> str | None:
    """Describe why firmware cannot parse a version. It aborts at such a one, at every start."""
    if any(number > _INT32_MAX for number in parse_version(version)):
        return f"must have no number above {_INT32_MAX}"
    return None


def url_problem(url: str, folder: Path | None) -> str | None:
    """Describe why boards cannot download firmware from a URL. `folder` holds this machine's own files."""
    if url.startswith(LOCAL_PREFIX):
        if folder is None:
            return "must begin with https://, since this installation has no files of its own"
        file = open_file(folder, url)
        if file is None:
            return "names no file in the data folder's `firmware`, where links do not count"
        file.close()
        return None
    try:
        parts = urlsplit(url)
        named = parts.scheme == "https" and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        named = False
    if not named or "@" in parts.netloc or parts.fragment:
        local = " or /firmware/" if folder else ""
        return f"must begin with https://{local}, without user name, password and fragment"
    return None


def open_file(folder: Path, path: str) -> FileIO | None:
    """Open the file of a path such as /firmware/xiaozhi.bin. Return None if there is none, or a link."""
    name = path.removeprefix(LOCAL_PREFIX)
    try:
        return open_regular_file(folder / name) if FILE_NAME.fullmatch(name) else None
    except OSError:
        return None


def board_url(url: str, host_header: str) -> str:
    """Return the whole URL for a board that called `host_header`; empty if its host is unknown."""
    if not url.startswith(LOCAL_PREFIX):
        return url
    host = f"http://{host_header}" if _AUTHORITY.fullmatch(host_header) else ""
    origin = config().public_url or host
    return f"{origin}{url}" if origin else ""


def firmware_releases(tenant_id: str) -> FirmwareReleases:
    """Return a tenant's firmware in the configured table."""
    return FirmwareReleases(devices_table(), tenant_id)
