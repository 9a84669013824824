"""POST /ota/ and /ota/activate: check-in and activation, as the firmware of stock boards speaks them.

A board with an owner gets the settings of its MQTT connection, and the offer of newer firmware. Any other gets a code,
which an operator claims.
Firmware takes only status 200 for success, hangs at answers of 8 KB, and aborts on names of more than 15 characters.
"""

import time
from http import HTTPStatus
from typing import Any, Final

from api.authentication import anonymous_source
from api.deployment import (
    BOARD_PASSWORDS,
    DEVICE_ENDPOINT,
    DEVICES,
    PROXY_SECRET,
    UNKNOWN_BOARD_LIMITS,
    lambda_function,
    table,
    variables,
)
from api.http_events import HttpRequest, HttpResponse, respond
from shared.access.rate_limits import rate_limits
from shared.aws.dynamodb import Write
from shared.devices import ids
from shared.devices.activation_codes import UNCLAIMABLE, activation_codes
from shared.devices.board_passwords import board_password
from shared.devices.boards import Board
from shared.devices.firmware_releases import RunningFirmware, UpdateOutcome, board_url, firmware_releases
from shared.devices.mqtt.board_endpoint import board_endpoint
from shared.devices.mqtt.broker_endpoint import KEEPALIVE_SECONDS
from shared.devices.registry import ClaimedBoard, RegisteredDevice, devices_table, registry
from shared.devices.sessions import SessionStore
from shared.devices.webhooks import webhooks
from shared.platform.clock import now_ms
from shared.platform.config import config
from shared.platform.telemetry import count, logger
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import Unavailable, UnknownMethod
from shared.rpc.strict_json import compact

_NAME: Final = "boards/check_in"
_ACTIVATE: Final = "activate"
_POLL_MS: Final = 30_000
_OWNED_SECONDS: Final = 86_400
_owned: Final[TtlCache[str, bool]] = TtlCache(_OWNED_SECONDS)
"""The boards with an owner that this process has seen. While the store is unavailable, they keep their settings."""
_TOO_MANY: Final = "Too many boards wait to be claimed. Try again in a quarter of an hour."


@lambda_function(
    table("Devices", "BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"),
    table("Limits", "UpdateItem"),
    BOARD_PASSWORDS,
    DEVICE_ENDPOINT,
    PROXY_SECRET,
    UNKNOWN_BOARD_LIMITS,
    variables("KHO_ADDRESS_WAITING_BOARDS"),
    timeout=20,
    condition=DEVICES,
    # The gateway has no routes that end with a slash: `proxy` is empty at /ota/.
    routes=("POST /ota", "POST /ota/{proxy+}"),
    concurrency="AnonymousConcurrency",
)
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer a board."""
    return respond(_NAME, event, _answer)


def _answer(request: HttpRequest) -> HttpResponse:
    request.require_small_body()
    source = anonymous_source(request)
    step = request.path.removeprefix("/ota").strip("/")
    if step not in ("", _ACTIVATE):
        raise UnknownMethod("There is no such endpoint.", guidance="Boards call /ota/ and /ota/activate.")
    board = Board.identify(request.headers.get("device-id", ""), request.headers.get("client-id", ""))
    try:
        owned = registry().find_board(board)
        settings = _settings(owned, request) if owned else {}
        if owned and not step:
            settings |= _firmware(owned.device, request)
    except Unavailable:
        if not _owned.get(board.pair_hash):
            raise
        return _response(HTTPStatus.OK, _server_time())
    if owned:
        _owned.put(board.pair_hash, value=True)
        return _response(HTTPStatus.OK, {} if step else settings | _server_time())
    _owned.delete(board.pair_hash)
    if config().auth == "required":
        rate_limits().require_unknown_board_capacity(source)
    if step:
        return _response(HTTPStatus.ACCEPTED, {})
    return _response(HTTPStatus.OK, _activation(board, source) | _server_time())


def _settings(owned: ClaimedBoard, request: HttpRequest) -> dict[str, Any]:
    """Return the settings of the board's MQTT connection, all of them: it keeps old values of what is left out."""
    device_id = owned.device.id
    return {
        "mqtt": {
            "endpoint": board_endpoint(request.headers.get("host", "")),
            "client_id": device_id,
            "username": device_id,
            "password": board_password(device_id, owned.generation),
            "keepalive": KEEPALIVE_SECONDS,
            "publish_topic": ids.up(device_id),
        }
    }


def _firmware(device: RegisteredDevice, request: HttpRequest) -> dict[str, Any]:
    """Return the offer of newer firmware. Without `force`, which would install it again at each start."""
    user_agent = request.headers.get("user-agent", "")
    running = RunningFirmware.identify(user_agent)
    if running is None:
        return {}
    SessionStore(devices_table(), device.tenant_id, device.id).record_firmware(user_agent.rpartition("/")[2])

    def event_writes(outcome: UpdateOutcome) -> list[Write]:
        data = {"board": running.board, "version": ".".join(map(str, running.version)), "outcome": outcome}
        return webhooks(device.tenant_id).event_writes("firmware", device.id, now_ms(), data)

    release, outcome = firmware_releases(device.tenant_id).offer(device.id, running, event_writes)
    if outcome:
        report = logger.warning if outcome == "failed" else logger.info
        report("firmware", extra={"device_id": device.id, "board": running.board, "outcome": outcome})
        count(**{f"firmware_updates_{outcome}": 1})
    url = board_url(release.url, request.headers.get("host", "")) if release else ""
    return {"firmware": {"version": release.version, "url": url}} if release and url else {}


def _activation(board: Board, source: str) -> dict[str, Any]:
    """Return the code that the board shows and speaks. With it, the board does not connect."""
    code = activation_codes().code_of(board, source)
    message = _TOO_MANY if code == UNCLAIMABLE else "Claim this board in Kho by the code"
    # Without a challenge, the board does not ask whether it was claimed.
    activation = {"code": code, "message": f"{message}\n{code}", "challenge": board.device_id, "timeout_ms": _POLL_MS}
    return {"activation": activation}


def _server_time() -> dict[str, Any]:
    """Return the time, and the minutes by which this machine's time zone is ahead of UTC."""
    return {"server_time": {"timestamp": now_ms(), "timezone_offset": time.localtime().tm_gmtoff // 60}}


def _response(status: HTTPStatus, content: dict[str, Any]) -> HttpResponse:
    return HttpResponse(status, compact(content))
