"""Check-in, activation, claims and releases of stock boards, at the real store."""

from __future__ import annotations

import importlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from boards import check_in as ota
from boards import provisioning
from infra.clients.cli.tenants import _erase_items
from infra.local.environment import prepare
from infra.local.template import load
from shared.access.rate_limits import RateLimits, rate_limits
from shared.aws.dynamodb import ConditionFailed, Table
from shared.devices.activation_codes import CODE_SECONDS, UNCLAIMABLE, ActivationCodes
from shared.devices.board_passwords import board_password
from shared.devices.registry import devices_table, registry
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.caller import ROLES, Caller
from shared.rpc.errors import KhoError, NotSignedIn
from tests.helpers.board_requests import BOARD_SETTINGS, BoardCaller
from tests.helpers.clock import Clock
from tests.helpers.dynamodb_requests import answer_operation, intercept_requests
from tests.helpers.size import sized
from tests.helpers.store_faults import FAILED
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from shared.devices.boards import Board

STRANGERS = sized(300, full=10_000)
BURST = sized(150, full=600)
AT_ONCE = sized(20, full=100)


@pytest.fixture(autouse=True)
def _empty_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Require credentials, with an empty limits table and no waiting boards."""
    for name, value in BOARD_SETTINGS.items():
        monkeypatch.setenv(name, value)
    config.cache_clear()
    rate_limits.cache_clear()
    for table, prefixes in ((config().limits_table, ("bucket#", "attempts#")), (config().devices_table, WAITING)):
        for prefix in prefixes:
            for page in Table(table).scan(prefix):
                Table(table).delete_all((item["pk"], item["sk"]) for item in page)
    yield
    monkeypatch.undo()
    config.cache_clear()
    rate_limits.cache_clear()


WAITING = ("#board#", "#code#", "#waiting#")


def waiting_items() -> list[Any]:
    """Return all items of boards that wait to be claimed."""
    return [item for prefix in WAITING for page in devices_table().scan(prefix) for item in page]


def call(method: str, tenant: str, **params: Any) -> Any:
    """Call a method of device-server as the tenant's operator. Raise its error."""
    handler = importlib.import_module(f"device_server.{method}").handler
    caller = Caller("tester", frozenset(ROLES), tenant)
    answer = handler({"method": "", "params": params, "caller": caller.record(), "correlation_id": "board-test"}, None)
    if "error" in answer:
        raise KhoError.from_record(answer["error"])
    return answer["result"]


def claim(tenant: str, code: str, **params: Any) -> str:
    """Claim a board and return its id."""
    device_id: str = call("devices_claim", tenant, code=code, name="Kitchen", **params)["device_id"]
    return device_id


def claimed_board(tenant: str) -> BoardCaller:
    board = BoardCaller()
    assert claim(tenant, board.code()) == board.board.device_id
    return board


def refusal(call_: Callable[[], object]) -> KhoError:
    with pytest.raises(KhoError) as error:
        call_()
    return error.value


def may_connect(board: BoardCaller, password: str) -> bool:
    device_id = board.board.device_id
    try:
        registry().verify(device_id, device_id, password.encode())
    except NotSignedIn:
        return False
    return True


def test_board_is_claimed_by_its_code_and_gets_the_same_password_each_time(tenant: str) -> None:
    board = BoardCaller()
    code = board.code()
    assert len(code) == 6
    assert code.isdecimal()
    assert board.code() == code
    assert board.call("/ota/activate") == (202, {})
    result = call("devices_claim", tenant, code=code, name="Kitchen")
    device_id = board.board.device_id
    assert (result["device_id"], result["name"], result["downlink"]) == (device_id, "Kitchen", "direct")
    assert board.call("/ota/activate") == (200, {})
    content = board.check_in()
    mqtt = content.pop("mqtt")
    password = mqtt.pop("password")
    assert mqtt == {
        "endpoint": "broker.example",
        "client_id": device_id,
        "username": device_id,
        "keepalive": 240,
        "publish_topic": f"devices/{device_id}/up",
    }
    assert list(content) == ["server_time"]
    assert board.password() == password
    assert may_connect(board, password)
    assert waiting_items() == []
    assert [each["device_id"] for each in call("devices_list", tenant)["devices"]] == [device_id]


def test_path_needs_no_slash_and_other_paths_are_unknown() -> None:
    board = BoardCaller()
    assert board.call("/ota")[1]["activation"]["code"] == board.code()
    assert board.call("/ota/other")[0] == 404


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"device-id": ""}, "Device-Id"),
        ({"device-id": "a0:85:e3:f4:49"}, "Device-Id"),
        ({"device-id": "a0:85:e3:f4:49:3\u0664"}, "Device-Id"),
        ({"client-id": ""}, "Client-Id"),
        ({"client-id": "me"}, "Client-Id"),
        ({"client-id": f"{uuid4()}\n"}, "Client-Id"),
    ],
)
def test_malformed_pair_is_refused_by_the_header(headers: dict[str, str], field: str) -> None:
    status, content = BoardCaller().call(**headers)
    assert (status, content["error"]["details"][0]["field"]) == (400, field)


def test_body_may_be_invalid_json_but_not_large() -> None:
    board = BoardCaller()
    assert board.call(body='{"board":{"ssid":"my "home""}}')[0] == 200
    assert board.call(body="")[0] == 200
    assert board.call(body="x" * 256 * 1024)[0] == 200
    assert board.call(body="x" * (256 * 1024 + 1))[0] == 413


@pytest.mark.stress
def test_parallel_check_ins_of_one_pair_make_one_record(record_property: Callable[[str, object], None]) -> None:
    """Check-ins of one board at the same time show one code, and store one record."""
    board = BoardCaller()
    barrier = threading.Barrier(AT_ONCE, timeout=CEILING_SECONDS)

    def check_in(_number: int) -> str:
        barrier.wait()
        return board.code()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        codes = set(pool.map(check_in, range(AT_ONCE)))
    assert len(codes) == 1
    assert UNCLAIMABLE not in codes
    assert {item["code"] for item in waiting_items()} == codes
    assert len(waiting_items()) == 3
    record_property("count", AT_ONCE)
    record_property("load", "parallel check-ins of one board")
    record_property("outcome", "one code, one record")


@pytest.mark.stress
def test_flood_of_strangers_stores_little_and_harms_nobody(
    tenant: str, record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers from one address take its places and its tokens, and nothing else. Boards elsewhere go on."""
    monkeypatch.setenv("KHO_ADDRESS_CHECK_IN_BURST", str(BURST))
    config.cache_clear()
    limits = RateLimits(Table(config().limits_table), config(), Clock())
    monkeypatch.setattr(ota, "rate_limits", lambda: limits)
    own = claimed_board(tenant)
    password = own.password()
    flood = "203.0.113.7"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: BoardCaller(source=flood).call(), range(STRANGERS)))
    statuses = [status for status, _ in answers]
    codes = [content["activation"]["code"] for status, content in answers if status == 200]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= BURST
    assert len([code for code in codes if code != UNCLAIMABLE]) == 30
    assert len(waiting_items()) == 90
    buckets = sum(len(page) for page in Table(config().limits_table).scan("bucket#"))
    assert buckets <= 5  # those of both addresses, of all, and of this test's tenant
    assert all("mqtt" not in content for _, content in answers)
    # A claimed board at the same address is served although the address is metered, and a new board elsewhere too.
    assert BoardCaller(source=flood).call("/ota/activate")[0] == 429
    own.source = flood
    assert own.password() == password
    assert own.call("/ota/activate")[0] == 200
    newcomer = BoardCaller(source="203.0.113.8")
    claim(tenant, newcomer.code())
    assert may_connect(newcomer, newcomer.password())
    record_property("count", STRANGERS)
    record_property("load", "check-ins of strangers from one address")
    record_property("outcome", "90 items stored; a claimed board there and a new one elsewhere were served")


def test_known_address_with_another_client_id_gets_a_code_and_never_a_password(tenant: str) -> None:
    victim = claimed_board(tenant)
    password = victim.password()
    impostor = BoardCaller(address=victim.address)
    code = impostor.code()
    assert impostor.board.device_id != victim.board.device_id
    assert claim(f"{tenant}-other", code) == impostor.board.device_id
    assert impostor.password() != password
    assert victim.password() == password
    assert may_connect(victim, password)
    assert not may_connect(victim, impostor.password())
    assert [each["device_id"] for each in call("devices_list", tenant)["devices"]] == [victim.board.device_id]


def test_replaced_device_of_the_same_tenant_is_released(tenant: str) -> None:
    before, others = claimed_board(tenant), claimed_board(f"{tenant}-other")
    password = before.password()
    after = BoardCaller(address=before.address)  # its flash was erased
    code = after.code()
    error = refusal(lambda: claim(tenant, code, replaces=others.board.device_id))
    assert (error.code, after.code()) == ("NOT_FOUND", code)
    claim(tenant, code, replaces=before.board.device_id)
    assert [each["device_id"] for each in call("devices_list", tenant)["devices"]] == [after.board.device_id]
    assert not may_connect(before, password)
    assert before.code()
    assert may_connect(others, others.password())


@pytest.mark.parametrize("by_command", [False, True])
def test_released_board_shows_a_code_and_its_old_password_is_never_valid_again(
    tenant: str, *, by_command: bool
) -> None:
    board = claimed_board(tenant)
    device_id, password = board.board.device_id, board.password()
    if by_command:
        registry().revoke(device_id)
    else:
        assert call("devices_release", tenant, device_id=device_id)["device_id"] == device_id
    assert not may_connect(board, password)
    assert refusal(lambda: call("devices_get", tenant, device_id=device_id)).code == "NOT_FOUND"
    code = board.code()
    assert board.call("/ota/activate")[0] == 202
    assert claim(f"{tenant}-next", code) == device_id
    assert board.password() != password
    assert not may_connect(board, password)
    assert call("devices_list", tenant)["devices"] == []
    call("devices_release", f"{tenant}-next", device_id=device_id)
    claim(tenant, board.code())
    assert may_connect(board, board.password())


def test_release_of_another_tenants_device_changes_nothing(tenant: str) -> None:
    board = claimed_board(tenant)
    error = refusal(lambda: call("devices_release", f"{tenant}-other", device_id=board.board.device_id))
    assert error.code == "NOT_FOUND"
    assert may_connect(board, board.password())


def test_code_is_claimed_once_however_many_try(tenant: str) -> None:
    board = BoardCaller()
    code = board.code()
    barrier = threading.Barrier(8, timeout=CEILING_SECONDS)

    def attempt(number: int) -> str:
        barrier.wait()
        try:
            return claim(f"{tenant}-{number}", code)
        except KhoError as error:
            return error.code

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, range(8)))
    assert outcomes.count(board.board.device_id) == 1
    assert set(outcomes) <= {board.board.device_id, "NOT_FOUND", "CONFLICT"}
    owner = f"{tenant}-{outcomes.index(board.board.device_id)}"
    assert registry().owner(board.board.device_id) == owner


def test_rotation_makes_the_next_password(tenant: str) -> None:
    board = claimed_board(tenant)
    password = board.password()
    registry().rotate(board.board.device_id)
    assert not may_connect(board, password)
    assert board.password() != password
    assert may_connect(board, board.password())
    registry().register(tenant, f"lamp-{tenant}")
    for unclaimed in ("lamp-unknown", f"lamp-{tenant}"):
        assert refusal(lambda device_id=unclaimed: registry().rotate(device_id)).code == "NOT_FOUND"  # type: ignore[misc]


def test_rotated_secret_accepts_passwords_of_both(tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    board = claimed_board(tenant)
    before = board.password()
    monkeypatch.setenv("KHO_DEVICE_SECRET", f"{'b' * 64} {'a' * 64}")
    assert may_connect(board, before)
    after = board.password()
    assert after != before
    assert may_connect(board, after)
    monkeypatch.setenv("KHO_DEVICE_SECRET", "b" * 64)
    assert may_connect(board, after)
    assert not may_connect(board, before)


def test_secret_is_kept_in_the_data_folder_for_its_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "environment", runtime.environment)  # so that monkeypatch restores it
    monkeypatch.delenv("KHO_DEVICE_SECRET")
    passwords = []
    for _ in range(2):
        prepare(load(), tmp_path, auth="open")
        passwords.append(board_password("board", 1))
    assert passwords[0] == passwords[1]
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("KHO_DEVICE_SECRET", "of the operator")
    prepare(load(), tmp_path, auth="open")
    assert board_password("board", 1) not in passwords


def test_table_holds_neither_client_id_nor_password(tenant: str) -> None:
    waiting, board = BoardCaller(), claimed_board(tenant)
    waiting.code()
    stored = str([item for page in devices_table().scan("") for item in page])
    assert board.board.device_id in stored
    for secret in (board.client_id, board.password(), waiting.client_id, waiting.source):
        assert secret not in stored


def test_erased_tenant_leaves_no_binding(tenant: str) -> None:
    board, others = claimed_board(tenant), claimed_board(f"{tenant}-other")
    password = board.password()
    assert _erase_items(devices_table(), tenant)
    stored = str([item for page in devices_table().scan("") for item in page])
    assert board.board.device_id not in stored
    assert not may_connect(board, password)
    assert board.code()
    assert others.password()


def test_claimed_board_gets_no_certificate(tenant: str) -> None:
    board = claimed_board(tenant)
    parameters = {"SerialNumber": board.board.device_id, "Password": board.password()}
    assert provisioning.handler({"parameters": parameters}, None) == {"allowProvisioning": False}


def test_wrong_codes_are_limited_for_the_tenant_and_right_ones_are_not(tenant: str) -> None:
    for _ in range(12):
        claimed_board(tenant)
    board = BoardCaller()
    code = board.code()
    wrong = [UNCLAIMABLE, *(f"{(int(code) + number) % 10**6:06}" for number in range(1, 10))]
    assert {refusal(lambda each=each: claim(tenant, each)).code for each in wrong} == {"NOT_FOUND"}  # type: ignore[misc]
    limited = refusal(lambda: claim(tenant, code))
    assert limited.code == "TOO_MANY_REQUESTS"
    assert 0 < limited.details["retry_after_seconds"] <= 60
    assert claim(f"{tenant}-other", code) == board.board.device_id


@pytest.mark.parametrize("code", ["", "12345", "1234567", "12345x", "\u0661\u0662\u0663\u0664\u0665\u0666", " 123456"])
def test_code_is_six_digits(tenant: str, code: str) -> None:
    assert refusal(lambda: claim(tenant, code)).code == "INVALID_PARAMS"


@pytest.mark.parametrize("name", ["Kit\u200bchen", "\u202eKitchen", "Kit\u0441hen"])
def test_name_of_a_board_can_be_told_apart(tenant: str, name: str) -> None:
    code = BoardCaller().code()
    refused = refusal(lambda: call("devices_claim", tenant, code=code, name=name))
    assert (refused.code, refused.details[0]["field"]) == ("INVALID_PARAMS", "name")
    assert call("devices_claim", tenant, code=code, name="Nhà bếp 👩🏽\u200d🍳")["name"] == "Nhà bếp 👩🏽\u200d🍳"


def codes_at(clock: Clock, slots: int = 500, slots_by_address: int = 30) -> ActivationCodes:
    return ActivationCodes(devices_table(), slots=slots, slots_by_address=slots_by_address, clock=clock)


def boards(number: int) -> list[Board]:
    return [BoardCaller().board for _ in range(number)]


def test_code_lives_while_its_board_checks_in_and_ends_after_it() -> None:
    clock, (board,) = Clock(1_000_000.0), boards(1)
    codes = codes_at(clock)
    code = codes.code_of(board, "here")
    for _ in range(10):
        clock.advance(CODE_SECONDS / 2)
        assert codes.code_of(board, "elsewhere") == code
        assert codes.find(code)
    assert {item["expires_at"] for item in waiting_items()} == {1_000_000 + 5 * CODE_SECONDS + CODE_SECONDS}
    clock.advance(CODE_SECONDS)
    assert codes.find(code) is None
    codes.code_of(board, "here")
    assert len({item["code"] for item in waiting_items() if item["expires_at"] > clock()}) == 1


def test_waiting_boards_of_an_address_and_in_all_are_limited() -> None:
    clock = Clock(1_000_000.0)
    codes = codes_at(clock, slots=5, slots_by_address=2)
    here = [codes.code_of(each, "here") for each in boards(4)]
    assert here.count(UNCLAIMABLE) == 2
    many = [codes.code_of(each, f"address {number}") for number, each in enumerate(boards(40))]
    assert 40 - many.count(UNCLAIMABLE) <= 3
    assert len(waiting_items()) <= 15
    assert codes.find(UNCLAIMABLE) is None
    clock.advance(CODE_SECONDS)
    assert codes.code_of(boards(1)[0], "here") != UNCLAIMABLE


def test_code_whose_place_was_lost_is_replaced() -> None:
    clock, (board,) = Clock(1_000_000.0), boards(1)
    before = codes_at(clock, slots=7).code_of(board, "here")
    for page in devices_table().scan("#code#"):
        devices_table().delete_all((item["pk"], item["sk"]) for item in page)
    clock.advance(CODE_SECONDS / 2)
    after = codes_at(clock).code_of(board, "here")
    assert codes_at(clock).find(after)
    assert codes_at(clock).find(before) is None or before == after


def test_board_goes_on_with_its_settings_while_the_store_is_down(tenant: str) -> None:
    board, stranger = claimed_board(tenant), BoardCaller()
    board.password()
    with intercept_requests(answer_operation("GetItem", lambda _: FAILED)):
        status, content = board.call()
        assert (status, list(content)) == (200, ["server_time"])
        assert stranger.call()[0] == 503
    assert board.password()


@pytest.mark.parametrize(
    ("mqtt_url", "host", "endpoint"),
    [
        ("mqtt://0.0.0.0:1883", "192.168.1.5:8001", "192.168.1.5:1883"),
        ("mqtt://127.0.0.1:32000", "localhost:8001", "localhost:32000"),
        ("mqtt://192.168.1.5:1883", "kho.lan", "192.168.1.5:1883"),
        ("mqtts://broker.example:8883", "kho.lan", "broker.example:8883"),
        ("mqtt://[::]:1883", "kho.lan:8001", "kho.lan:1883"),
    ],
)
def test_endpoint_is_the_brokers_address_or_the_host_that_the_board_called(
    tenant: str, monkeypatch: pytest.MonkeyPatch, mqtt_url: str, host: str, endpoint: str
) -> None:
    board = claimed_board(tenant)
    monkeypatch.setenv("KHO_BOARD_ENDPOINT", "")
    monkeypatch.setenv("KHO_MQTT_URL", mqtt_url)
    config.cache_clear()
    board.host = host
    assert board.check_in()["mqtt"]["endpoint"] == endpoint
    monkeypatch.setenv("KHO_PUBLIC_URL", "https://public.example:8443")
    config.cache_clear()
    assert board.check_in()["mqtt"]["endpoint"] == endpoint.replace(host.partition(":")[0], "public.example")


def test_host_that_firmware_cannot_parse_is_refused(tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    board = claimed_board(tenant)
    monkeypatch.setenv("KHO_BOARD_ENDPOINT", "")
    monkeypatch.setenv("KHO_MQTT_URL", "mqtt://0.0.0.0:1883")
    config.cache_clear()
    board.host = "[::1]:8001"
    assert board.call()[0] == 400


def test_nothing_is_kept_in_this_process_of_strangers() -> None:
    before = len(ota._owned._entries)
    for _ in range(20):
        BoardCaller().call()
    assert len(ota._owned._entries) == before


def test_code_of_a_clock_that_was_ahead_is_replaced() -> None:
    """It cannot be claimed for longer than a code lives, and it keeps no board and no place waiting."""
    clock, (board, other) = Clock(1_000_000.0), boards(2)
    clock.advance(2 * 86_400)
    before = codes_at(clock, slots=1, slots_by_address=1).code_of(board, "here")
    waiting = codes_at(clock, slots=1).find(before)
    assert waiting
    clock.advance(-2 * 86_400)
    codes = codes_at(clock, slots=1, slots_by_address=1)
    assert codes.find(before) is None
    with pytest.raises(ConditionFailed):
        devices_table().transact(*codes.removal(waiting))
    after = codes.code_of(board, "here")
    assert codes.find(after)
    assert codes.code_of(other, "here") == UNCLAIMABLE
    devices_table().transact(*[write for found in [codes.find(after)] if found for write in codes.removal(found)])
    assert codes.code_of(other, "here") != UNCLAIMABLE


def test_each_claim_has_another_generation_at_the_same_time(tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password of before is never valid again, even if the clock shows the same time once more."""
    stopped = time.time()
    monkeypatch.setattr(time, "time", lambda: stopped)
    board = claimed_board(tenant)
    first = registry().find_board(board.board)
    call("devices_release", tenant, device_id=board.board.device_id)
    claim(tenant, board.code())
    second = registry().find_board(board.board)
    assert first
    assert second
    assert first.generation != second.generation
