"""Another caller, event or board acts between what a step of a device has read and what it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from shared.aws.dynamodb import Write
from shared.devices import activation_codes, keys
from shared.devices.activation_codes import UNCLAIMABLE, ActivationCodes
from shared.devices.boards import Board
from shared.devices.firmware_releases import FirmwareReleases, RunningFirmware
from shared.devices.registry import DeviceRegistry, devices_table, registry
from shared.devices.sessions import DevicePresence, DeviceSession, SessionStore
from shared.platform.clock import now_ms
from shared.rpc.errors import Conflict, NotFound
from tests.helpers.board_requests import random_address
from tests.helpers.clock import Clock
from tests.helpers.interference import another_caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.devices.activation_codes import WaitingBoard


@pytest.fixture
def devices() -> DeviceRegistry:
    return registry()


@pytest.fixture
def device_id() -> str:
    return f"board-{uuid4().hex}"


@pytest.fixture
def other(tenant: str) -> str:
    """Return the id of another tenant."""
    return f"{tenant}-other"


def registered(devices: DeviceRegistry, tenant: str, device_id: str) -> str:
    return devices.register(tenant, device_id)[1]


def signs_in(devices: DeviceRegistry, device_id: str, password: str) -> bool:
    return devices.verify(device_id, device_id, password.encode()).id == device_id


@pytest.mark.parametrize("before", ["", "mine", "theirs", "of a third"])
def test_device_that_another_tenant_just_registered_stays_theirs(
    devices: DeviceRegistry, tenant: str, other: str, device_id: str, before: str
) -> None:
    """Also a revoked id, of which two tenants know that it is free."""
    if before:
        registered(devices, {"mine": tenant, "theirs": other}.get(before, f"{tenant}-third"), device_id)
        devices.revoke(device_id)
    passwords: list[str] = []
    theirs = lambda: passwords.append(registered(devices, other, device_id))  # noqa: E731
    with another_caller(theirs, before="TransactWriteItems"), pytest.raises(Conflict) as refused:
        devices.register(tenant, device_id)
    assert refused.value.code == "ALREADY_EXISTS"
    assert devices.owner(device_id) == other
    assert signs_in(devices, device_id, passwords[0])
    assert devices.find(tenant, device_id) is None


@pytest.mark.parametrize("before", ["", "mine"])
def test_device_that_another_caller_of_the_tenant_just_registered_keeps_its_password(
    devices: DeviceRegistry, tenant: str, device_id: str, before: str
) -> None:
    if before:
        registered(devices, tenant, device_id)
        devices.revoke(device_id)
    passwords: list[str] = []
    first = lambda: passwords.append(registered(devices, tenant, device_id))  # noqa: E731
    with another_caller(first, before="TransactWriteItems"), pytest.raises(Conflict):
        devices.register(tenant, device_id)
    assert signs_in(devices, device_id, passwords[0])


def test_device_that_was_just_registered_is_not_registered_on_connect(
    devices: DeviceRegistry, tenant: str, device_id: str
) -> None:
    passwords: list[str] = []
    theirs = lambda: passwords.append(registered(devices, tenant, device_id))  # noqa: E731
    with another_caller(theirs, before="TransactWriteItems"):
        device = devices.find_or_register(device_id)
    assert device
    assert device.tenant_id == tenant
    assert signs_in(devices, device_id, passwords[0])


def test_device_that_was_just_registered_for_the_same_tenant_keeps_its_password_on_connect(
    devices: DeviceRegistry, device_id: str
) -> None:
    passwords: list[str] = []
    with another_caller(lambda: passwords.append(registered(devices, "local", device_id)), before="TransactWriteItems"):
        devices.find_or_register(device_id)
    assert signs_in(devices, device_id, passwords[0])


def test_device_that_was_just_erased_is_not_revoked_as_a_part_of_an_item(
    devices: DeviceRegistry, tenant: str, device_id: str
) -> None:
    registered(devices, tenant, device_id)
    erase = lambda: devices_table().delete_all([(keys.devices(tenant), device_id)])  # noqa: E731
    with another_caller(erase, before="UpdateItem"), pytest.raises(NotFound):
        devices.revoke(device_id)
    assert devices_table().get(keys.devices(tenant), device_id) is None


class Boards:
    """Boards that check in at one installation, at a time that the test sets."""

    def __init__(self, slots_by_address: int = 3) -> None:
        self.clock = Clock()
        self.codes = ActivationCodes(devices_table(), slots_by_address=slots_by_address, clock=self.clock)
        self.address = uuid4().hex

    def board(self) -> Board:
        return Board.identify(random_address(), str(uuid4()))

    def code_of(self, board: Board) -> str:
        return self.codes.code_of(board, self.address)

    def waiting(self, code: str) -> WaitingBoard:
        waiting = self.codes.find(code)
        assert waiting
        return waiting

    def claim(self, tenant: str, waiting: WaitingBoard, replaces: str = "") -> str:
        claimed = registry().claim(tenant, waiting, self.codes.removal(waiting), name="", replaces=replaces)
        return claimed.id


def fixed_codes(monkeypatch: pytest.MonkeyPatch, *codes: str) -> None:
    """Make these the next codes."""
    left = list(codes)
    monkeypatch.setattr(activation_codes, "new_code", lambda: left.pop(0))


@pytest.fixture
def _no_codes(store: str) -> None:
    """Delete the boards that wait, whose codes may be those of the test."""
    for prefix in ("#board#", "#code#", "#waiting#"):
        for page in devices_table().scan(prefix):
            devices_table().delete_all((item["pk"], item["sk"]) for item in page)


@pytest.fixture
def boards(_no_codes: None) -> Boards:
    return Boards()


@pytest.fixture
def crowded_boards(_no_codes: None) -> Boards:
    """Return boards at an address that has one place."""
    return Boards(slots_by_address=1)


def test_board_that_another_tenant_just_claimed_stays_theirs(boards: Boards, tenant: str, other: str) -> None:
    board = boards.board()
    waiting = boards.waiting(boards.code_of(board))
    with another_caller(lambda: boards.claim(other, waiting), before="TransactWriteItems"), pytest.raises(Conflict):
        boards.claim(tenant, waiting)
    assert registry().owner(board.device_id) == other
    assert registry().find(tenant, board.device_id) is None


def test_claimed_board_is_not_registered_as_a_device(boards: Boards, tenant: str) -> None:
    """Its password would not be valid any more, also if the same tenant does it."""
    device_id = boards.claim(tenant, boards.waiting(boards.code_of(boards.board())))
    with pytest.raises(Conflict):
        registry().register(tenant, device_id)
    assert registry().rotate(device_id).id == device_id


def test_board_whose_code_just_ended_is_not_claimed(boards: Boards, tenant: str) -> None:
    board = boards.board()
    waiting = boards.waiting(boards.code_of(board))
    boards.clock.advance(waiting.expires_at - boards.clock())
    with pytest.raises(Conflict):
        boards.claim(tenant, waiting)
    assert registry().owner(board.device_id) is None


def test_board_is_not_claimed_by_a_code_that_another_board_just_got(
    boards: Boards, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = boards.board(), boards.board()
    fixed_codes(monkeypatch, "123456", "123456")
    waiting = boards.waiting(boards.code_of(first))

    def end_and_give_to_another() -> None:
        boards.clock.advance(waiting.expires_at - boards.clock())
        assert boards.code_of(second) == "123456"
        boards.clock.advance(boards.clock() - waiting.expires_at)

    removal = boards.codes.removal(waiting)
    with another_caller(end_and_give_to_another, before="TransactWriteItems"), pytest.raises(Conflict):
        registry().claim(tenant, waiting, removal, name="")
    assert boards.waiting("123456").device_id == second.device_id


def test_claim_revokes_nothing_that_was_just_erased(boards: Boards, tenant: str) -> None:
    replaced = boards.claim(tenant, boards.waiting(boards.code_of(boards.board())))
    board = boards.board()
    waiting = boards.waiting(boards.code_of(board))
    erase = lambda: devices_table().delete_all([(keys.devices(tenant), replaced)])  # noqa: E731
    with another_caller(erase, before="TransactWriteItems"), pytest.raises(Conflict):
        boards.claim(tenant, waiting, replaced)
    assert devices_table().get(keys.devices(tenant), replaced) is None


def test_password_of_a_board_that_was_just_revoked_is_not_renewed(boards: Boards, tenant: str) -> None:
    device_id = boards.claim(tenant, boards.waiting(boards.code_of(boards.board())))
    with another_caller(lambda: registry().revoke(device_id), before="UpdateItem"), pytest.raises(NotFound):
        registry().rotate(device_id)


def test_password_of_a_device_that_just_took_a_boards_id_is_not_renewed(boards: Boards, tenant: str) -> None:
    """A registered device has no generation: only a claimed board's password is renewed."""
    device_id = boards.claim(tenant, boards.waiting(boards.code_of(boards.board())))

    def take_over() -> None:
        registry().revoke(device_id)
        devices_table().delete_all([(keys.devices(tenant), device_id)])
        item = {"pk": keys.devices(tenant), "sk": device_id, "name": "", "downlink": "direct", "created_at": ""}
        devices_table().write(Write("Put", item | {"password_hash": "of another"}))

    with another_caller(take_over, before="UpdateItem"), pytest.raises(NotFound):
        registry().rotate(device_id)


def test_board_that_checks_in_twice_at_once_shows_one_code(boards: Boards) -> None:
    board = boards.board()
    shown: list[str] = []
    with another_caller(lambda: shown.append(boards.code_of(board)), before="TransactWriteItems"):
        shown.append(boards.code_of(board))
    assert shown[0] == shown[1]


def test_code_that_another_board_just_got_is_not_given_twice(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of boards with the same code or place among the codes, only the first shows it."""
    fixed_codes(monkeypatch, "123456", "623456", "000007")  # 500 places
    first, second = boards.board(), boards.board()
    with another_caller(lambda: boards.code_of(first), before="TransactWriteItems"):
        assert boards.code_of(second) == "000007"
    assert boards.waiting("623456").device_id == first.device_id


def test_place_of_an_address_that_another_board_just_took_is_not_taken_twice(crowded_boards: Boards) -> None:
    boards = crowded_boards
    first, second = boards.board(), boards.board()
    with another_caller(lambda: boards.code_of(first), before="TransactWriteItems"):
        assert boards.code_of(second) == UNCLAIMABLE
    assert boards.waiting(boards.code_of(first)).device_id == first.device_id


def test_expired_places_are_free_before_the_table_deletes_them(
    crowded_boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    boards = crowded_boards
    fixed_codes(monkeypatch, *["123456"] * 3)
    first, second = boards.board(), boards.board()
    waiting = boards.waiting(boards.code_of(first))
    boards.clock.advance(waiting.expires_at - boards.clock())
    assert boards.codes.find("123456") is None
    assert boards.code_of(second) == "123456"
    boards.clock.advance(waiting.expires_at - boards.clock() + 2000)
    assert boards.code_of(first) == "123456"


def test_code_that_was_just_claimed_is_not_prolonged(boards: Boards, tenant: str) -> None:
    board = boards.board()
    code = boards.code_of(board)
    waiting = boards.waiting(code)
    boards.clock.advance(400)
    with another_caller(lambda: boards.claim(tenant, waiting), before="TransactWriteItems"):
        assert boards.code_of(board) != code
    assert boards.codes.find(code) is None


def test_code_whose_place_another_board_just_took_is_not_prolonged(
    boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed_codes(monkeypatch, "123456", "123456", "000007")
    first, second = boards.board(), boards.board()
    code = boards.code_of(first)
    boards.clock.advance(400)

    def lose_the_place() -> None:
        devices_table().delete_all([keys.code_slot(123456 % 500)])
        assert boards.code_of(second) == code

    with another_caller(lose_the_place, before="TransactWriteItems"):
        assert boards.code_of(first) == "000007"
    assert boards.waiting(code).device_id == second.device_id


@pytest.fixture
def sessions(tenant: str, device_id: str) -> SessionStore:
    return SessionStore(devices_table(), tenant, device_id)


def presence(connected: bool, connection: str, changed_at: int, version: int) -> DevicePresence:
    return DevicePresence(connected, connection, changed_at, version)


@pytest.mark.parametrize(
    ("stored", "late", "is_newer"),
    [
        (presence(True, "a", 1000, 1), presence(True, "a", 1000, 1), False),
        (presence(True, "a", 1000, 1), presence(False, "a", 2000, 1), True),
        (presence(False, "a", 2000, 1), presence(False, "a", 2000, 1), False),
        (presence(False, "a", 2000, 1), presence(True, "a", 1000, 1), False),
        (presence(True, "b", 3000, 2), presence(False, "a", 4000, 1), False),
        (presence(False, "a", 2000, 1), presence(True, "b", 1500, 2), True),
        (presence(True, "b", 10_000, 7), presence(True, "c", 15_000, 0), False),
        (presence(True, "b", 10_000, 7), presence(True, "c", 15_001, 0), True),
        (presence(True, "b", 10_000, 7), presence(True, "c", 10_001, 7), True),
        (presence(True, "b", 10_000, 7), presence(True, "c", 10_000, 7), False),
        (presence(True, "b", 10_000, 7), presence(True, "b", 10_001, 7), False),
        (presence(True, "b", 10_000, 7), presence(False, "b", 9_000, 7), True),
        (presence(True, "b", 10_000, 7), presence(False, "a", 9_000, 6), False),
    ],
)
def test_event_of_a_connection_is_stored_if_it_is_newer(
    sessions: SessionStore, stored: DevicePresence, late: DevicePresence, is_newer: bool
) -> None:
    """Events arrive in any order, and again; a broker that has forgotten the device counts from 0 again."""
    assert sessions.record_presence(stored)
    assert sessions.record_presence(late) is is_newer
    assert sessions.read().presence == (late if is_newer else stored)


def session(number: int) -> DeviceSession:
    return DeviceSession(f"session-{number}", "board", "2.4.2", 1000 + number, "a", "")


def test_claim_of_a_handshake_is_exclusive_for_its_time(
    sessions: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("shared.devices.sessions.now_ms", clock.milliseconds)
    assert sessions.claim("first", 10)
    assert not sessions.claim("second", 10)
    clock.advance(9)
    assert not sessions.claim("second", 10)
    clock.advance(1.002)
    assert sessions.claim("second", 10)
    assert not sessions.start("first", session(1)), "its claim was lost"
    sessions.release_claim("first")
    assert not sessions.claim("third", 10), "only its own claim is released"
    assert sessions.start("second", session(2))
    started = sessions.read().session
    assert started
    assert (started.id, started.handshake) == ("session-2", "second")
    assert not sessions.start("second", session(3)), "a claim starts one session"
    assert sessions.claim("third", 10), "no claim is left"
    sessions.release_claim("third")
    assert sessions.claim("fourth", 10)


def test_session_that_was_just_replaced_is_not_renamed(sessions: SessionStore) -> None:
    for number in (1, 2):
        sessions.claim("any", 10)
        sessions.start("any", session(number))
    assert not sessions.rename("session-1", "hello")
    assert sessions.rename("session-2", "hello")
    renamed = sessions.read().session
    assert renamed
    assert renamed.id == "hello"


def test_time_of_the_last_reply_never_goes_back(sessions: SessionStore) -> None:
    for at in (2000, 1000, 3000):
        sessions.record_answer(at)
        assert sessions.read().answered_at == max(at, 2000)


@pytest.mark.parametrize("ahead_ms", [0, 50_000])
def test_reply_of_the_last_minute_is_not_replaced_by_an_earlier_one(sessions: SessionStore, ahead_ms: int) -> None:
    """Clocks of functions differ by up to a minute."""
    latest = now_ms() + ahead_ms
    for at in (latest, latest - 1000):
        sessions.record_answer(at)
        assert sessions.read().answered_at == latest


def test_firmware_of_a_device_without_a_session_is_not_recorded(
    sessions: SessionStore, tenant: str, device_id: str
) -> None:
    sessions.record_firmware("2.0.0")
    assert devices_table().get(keys.device(tenant, device_id), keys.SESSION) is None


@pytest.mark.parametrize(("version", "is_obsolete"), [("2.4.2", False), ("2.4.3", True)])
def test_session_of_other_firmware_is_obsolete(sessions: SessionStore, version: str, is_obsolete: bool) -> None:
    sessions.claim("any", 10)
    sessions.start("any", session(1))
    sessions.record_firmware(version)
    stored = sessions.read().session
    assert stored
    assert stored.is_obsolete is is_obsolete


def test_hellos_in_quick_succession_are_one(sessions: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("shared.devices.sessions.now_ms", clock.milliseconds)
    assert sessions.accept_hello(10)
    assert not sessions.accept_hello(10)
    clock.advance(9)
    assert not sessions.accept_hello(10)
    clock.advance(1.002)
    assert sessions.accept_hello(10)


class Updates:
    """A board of one kind that checks in with its version."""

    def __init__(self, tenant: str, device_id: str) -> None:
        self.releases = FirmwareReleases(devices_table(), tenant)
        self.device_id = device_id
        self.releases.set("bread", "2.0.0", "https://example.com/a.bin")

    def check_in(self, version: str) -> tuple[bool, str | None]:
        """Return whether the board is offered the release, and the outcome that is known now."""
        running = RunningFirmware("bread", tuple(map(int, version.split("."))))
        offered, outcome = self.releases.offer(self.device_id, running)
        return offered is not None, outcome


@pytest.fixture
def updates(tenant: str, device_id: str) -> Updates:
    return Updates(tenant, device_id)


def twice_at_once(check_in: Callable[[], tuple[bool, str | None]]) -> list[tuple[bool, str | None]]:
    """Return the results of a check-in and of one that was just before its writes."""
    results: list[tuple[bool, str | None]] = []
    with another_caller(lambda: results.append(check_in()), before="TransactWriteItems"):
        results.append(check_in())
    return results


def test_check_ins_at_once_count_as_one_offer(updates: Updates) -> None:
    for _ in range(3):
        assert twice_at_once(lambda: updates.check_in("1.0.0")) == [(True, None), (True, None)]
    assert twice_at_once(lambda: updates.check_in("1.0.0")) == [(False, "failed"), (False, None)]
    assert updates.check_in("1.0.0") == (False, None)


@pytest.mark.parametrize("before", [0, 1])
def test_offers_that_were_just_made_are_not_forgotten(updates: Updates, before: int) -> None:
    """Three offers are made, however check-ins overlap."""
    for _ in range(before):
        updates.check_in("1.0.0")

    def check_in_twice() -> None:
        updates.check_in("1.0.0")
        updates.check_in("1.0.0")

    with another_caller(check_in_twice, before="TransactWriteItems"):
        updates.check_in("1.0.0")
    assert [updates.check_in("1.0.0") for _ in range(2)] == [
        (before == 0, None if before == 0 else "failed"),
        (False, "failed" if before == 0 else None),
    ]


def test_offer_of_a_former_release_does_not_hide_those_of_the_new_one(updates: Updates) -> None:
    set_again = lambda: updates.releases.set("bread", "3.0.0", "https://example.com/b.bin")  # noqa: E731
    with another_caller(set_again, before="TransactWriteItems"):
        updates.check_in("1.0.0")
    assert [updates.check_in("1.0.0") for _ in range(4)] == [(True, None)] * 3 + [(False, "failed")]


def test_installed_update_is_told_once(updates: Updates) -> None:
    updates.check_in("1.0.0")
    assert twice_at_once(lambda: updates.check_in("2.0.0")) == [(False, "installed"), (False, None)]
    assert updates.check_in("2.0.0") == (False, None)


@pytest.mark.parametrize("offers", [1, 3])
def test_offers_of_a_release_that_was_just_set_again_are_its_own(updates: Updates, offers: int) -> None:
    """Offers and failures of the former release do not count for the new one."""
    for _ in range(offers):
        updates.check_in("1.0.0")

    def set_again() -> None:
        updates.releases.set("bread", "3.0.0", "https://example.com/b.bin")
        updates.check_in("1.0.0")

    with another_caller(set_again, before="TransactWriteItems"):
        updates.check_in("1.0.0")
    assert [updates.check_in("1.0.0")[0] for _ in range(3)] == [True, True, False]
