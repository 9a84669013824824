"""Firmware: offered to the tenant's bound boards while theirs is older, and not again after three failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.iot.simulator.flash import FirmwareAbort
from infra.local.iot.simulator.stock_board import parse_version as parse_as_firmware
from shared.devices.firmware_releases import RunningFirmware, parse_version
from shared.devices.registry import devices_table
from shared.devices.sessions import DeviceSession, SessionStore
from shared.platform.config import config
from shared.rpc.errors import InvalidParams, NotFound
from tests.helpers.board_requests import BOARD_SETTINGS, BoardCaller
from tests.helpers.log_records import log_records
from tests.integration.devices.test_onboarding import call, claimed_board, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BOARD = "bread-compact-wifi"
URL = "https://files.example/xiaozhi.bin?X-Amz-Signature=0"
OFFER = {"version": "2.4.3", "url": URL}


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in (BOARD_SETTINGS | {"KHO_FIRMWARE_FOLDER": ""}).items():
        monkeypatch.setenv(name, value)
    config.cache_clear()
    yield
    monkeypatch.undo()
    config.cache_clear()


def set_firmware(tenant: str, board: str = BOARD, version: str = "2.4.3", url: str = URL) -> Any:
    return call("firmware_set", tenant, board=board, version=version, url=url)


def listed(tenant: str) -> list[Any]:
    releases: list[Any] = call("firmware_list", tenant)["firmware"]
    return releases


def offered(board: BoardCaller, version: str = "2.4.2", kind: str = BOARD) -> Any:
    """Return the offer that a board of this version gets at a check-in."""
    status, content = board.call(**{"user-agent": f"{kind}/{version}"})
    assert status == 200
    assert len(json.dumps(content)) < 4096
    return content.get("firmware")


def test_older_board_is_offered_the_release_without_force(tenant: str) -> None:
    board = claimed_board(tenant)
    assert offered(board) is None
    set_firmware(tenant)
    assert offered(board) == OFFER
    assert offered(board, "2.4") == OFFER


@pytest.mark.parametrize("version", ["2.4.3", "2.4.3.1", "2.10.0", "3.0", "2.4.4-rc1"])
def test_newer_board_is_offered_nothing(version: str, tenant: str) -> None:
    set_firmware(tenant)
    assert offered(claimed_board(tenant), version) is None


UNREADABLE = {
    "nothing": "",
    "no version": BOARD,
    "empty version": f"{BOARD}/",
    "no number": f"{BOARD}/v2",
    "no board": "/2.4.2",
    "eleven digits": f"{BOARD}/1.{'1' * 11}",
    "five thousand digits": f"{BOARD}/{'1' * 5000}",
    "long board": f"{'b' * 255}/1",
    "longer than a sort key": f"{'b' * 1100}/1",
    "thousands of numbers": f"{BOARD}/{'1.' * 2000}1",
}


@pytest.mark.parametrize("user_agent", UNREADABLE.values(), ids=UNREADABLE)
def test_board_without_a_readable_version_is_offered_nothing(user_agent: str, tenant: str) -> None:
    set_firmware(tenant)
    status, content = claimed_board(tenant).call(**{"user-agent": user_agent})
    assert (status, "mqtt" in content, "firmware" in content) == (200, True, False)


def test_other_kinds_other_tenants_and_unclaimed_boards_are_offered_nothing(tenant: str) -> None:
    set_firmware(tenant)
    assert offered(claimed_board(tenant), kind="another-board") is None
    assert offered(claimed_board(f"{tenant}-other")) is None
    assert offered(BoardCaller(source="198.51.100.77")) is None


def test_offer_stops_after_three_failures_is_told_and_starts_again_when_it_is_set(tenant: str, log: Path) -> None:
    board, other = claimed_board(tenant), claimed_board(tenant)
    set_firmware(tenant)
    assert [offered(board) for _ in range(3)] == [OFFER] * 3
    assert listed(tenant)[0]["failed_devices"] == []
    assert [offered(board) for _ in range(2)] == [None] * 2
    assert listed(tenant)[0]["failed_devices"] == [board.board.device_id]
    assert [each["outcome"] for each in log_records(log, "firmware")] == ["failed"]
    assert offered(other) == OFFER
    set_firmware(tenant)
    assert listed(tenant)[0]["failed_devices"] == []
    assert offered(board) == OFFER


def test_board_that_has_installed_it_is_told_and_may_fail_anew(tenant: str, log: Path) -> None:
    board = claimed_board(tenant)
    set_firmware(tenant)
    assert [offered(board) for _ in range(3)] == [OFFER] * 3
    assert [offered(board, "2.4.3") for _ in range(2)] == [None] * 2
    assert [each["outcome"] for each in log_records(log, "firmware")] == ["installed"]
    assert [offered(board) for _ in range(4)] == [OFFER] * 3 + [None]


def test_deleted_firmware_is_not_offered(tenant: str) -> None:
    board = claimed_board(tenant)
    released = set_firmware(tenant)
    assert call("firmware_delete", tenant, board=BOARD) == released
    assert offered(board) is None
    assert listed(tenant) == []
    assert isinstance(refusal(lambda: call("firmware_delete", tenant, board=BOARD)), NotFound)


def test_releases_are_listed_by_board_in_pages(tenant: str) -> None:
    for board in ("c-board", "a-board", "b-board"):
        set_firmware(tenant, board=board)
    first = call("firmware_list", tenant, limit=2)
    second = call("firmware_list", tenant, limit=2, cursor=first["next_cursor"])
    assert [each["board"] for each in first["firmware"] + second["firmware"]] == ["a-board", "b-board", "c-board"]
    assert "next_cursor" not in second


@pytest.mark.parametrize(
    "version", ["v2.4.3", "2..3", "2.4.", ".2", "2.4.3-rc1", "x", "", "2.99999999999", "2.2147483648", "２.4", "2.4\n"]
)
def test_versions_that_abort_firmware_are_refused(version: str, tenant: str) -> None:
    error = refusal(lambda: set_firmware(tenant, version=version))
    assert isinstance(error, InvalidParams)
    assert [each["field"] for each in error.details] == ["version"]


def test_version_of_the_most_digits_is_read() -> None:
    assert RunningFirmware.identify(f"{BOARD}/1.9999999999") == RunningFirmware(BOARD, (1, 9_999_999_999))
    board = "b" * 254
    assert RunningFirmware.identify(f"{board}/1") == RunningFirmware(board, (1,))
    assert RunningFirmware.identify(f"{board}/12") is None


@pytest.mark.parametrize("version", ["2", "2.4.3", "0.0.1", "2.2147483647", "2.4.3.1"])
def test_accepted_versions_are_parsed_as_by_firmware(version: str, tenant: str) -> None:
    set_firmware(tenant, version=version)
    assert list(parse_version(version)) == parse_as_firmware(version)
    running = RunningFirmware.identify(f"{BOARD}/{version}")
    assert running
    assert running.version == parse_version(version)
    with pytest.raises(FirmwareAbort):
        parse_as_firmware(f"v{version}")


URLS = [
    *(
        "http://files.example/x.bin",
        "ftp://files.example/x",
        "files.example/x.bin",
        "https://",
        "https://:443/x",
        "https:///x",
    ),
    *(
        "https://user@files.example/x",
        "https://files.example:x/",
        "https://files.example/x#y",
        "/firmware/x.bin",
        "https://a b/",
    ),
    "https://files.example/" + "x" * 1_024,
]


@pytest.mark.parametrize("url", URLS)
def test_urls_that_boards_cannot_download_are_refused(url: str, tenant: str) -> None:
    error = refusal(lambda: set_firmware(tenant, url=url))
    assert isinstance(error, InvalidParams)
    assert [each["field"] for each in error.details] == ["url"]


def test_own_file_is_offered_at_the_address_that_the_board_called(
    tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KHO_FIRMWARE_FOLDER", str(tmp_path))
    monkeypatch.setenv("KHO_PUBLIC_URL", "")
    config.cache_clear()
    (tmp_path / "x.bin").write_bytes(b"image")
    (tmp_path.parent / "secret.bin").write_bytes(b"secret")
    board = claimed_board(tenant)
    for wrong in ("/firmware/missing.bin", "/firmware/../secret.bin", "/firmware/", "/firmware/."):
        assert isinstance(refusal(lambda: set_firmware(tenant, url=wrong)), InvalidParams)  # noqa: B023 - called at once
    set_firmware(tenant, url="/firmware/x.bin")
    assert offered(board) == {"version": "2.4.3", "url": "http://kho.example:8001/firmware/x.bin"}
    monkeypatch.setenv("KHO_PUBLIC_URL", "https://kho.example.com")
    config.cache_clear()
    assert offered(board) == {"version": "2.4.3", "url": "https://kho.example.com/firmware/x.bin"}


def session_of(board: BoardCaller, tenant: str, version: str) -> SessionStore:
    """Store a session in which the board has reported a version."""
    store = SessionStore(devices_table(), tenant, board.board.device_id)
    assert store.claim("handshake", 60)
    assert store.start("handshake", DeviceSession("session", "board", version, 0, "", "handshake"))
    return store


@pytest.mark.parametrize(("version", "is_obsolete"), [("2.4.2", False), ("2.4.3", True), ("2.4.2-rc1", True)])
def test_session_of_other_firmware_than_the_board_checks_in_with_is_obsolete(
    tenant: str, version: str, is_obsolete: bool
) -> None:
    """A board with new firmware has its session when it connects: nothing else tells its version and tools."""
    board = claimed_board(tenant)
    store = session_of(board, tenant, "2.4.2")
    offered(board, version)
    session = store.read().session
    assert session
    assert session.is_obsolete is is_obsolete
    assert store.claim("next", 60)
    assert store.start("next", DeviceSession("next", "board", version, 0, "", "next"))
    renewed = store.read().session
    assert renewed
    assert not renewed.is_obsolete


def test_check_in_of_a_board_without_a_session_stores_none(tenant: str) -> None:
    board = claimed_board(tenant)
    offered(board)
    assert SessionStore(devices_table(), tenant, board.board.device_id).read().session is None
