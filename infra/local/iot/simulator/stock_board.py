"""A stock board from its start to its MQTT settings, as its firmware does it.

It checks in. While the answer has an activation, it shows the code and asks whether it was claimed. It has the
firmware's traps: it hangs at large answers, and aborts on long names, on versions such as v2.4.3, and on a broker's
address with a scheme.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from infra.local.iot.simulator.board_http import NoAnswer, download, post
from infra.local.iot.simulator.firmware import parse_endpoint
from infra.local.iot.simulator.flash import FirmwareAbort

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.iot.simulator.board_http import BoardAnswer, Trace
    from infra.local.iot.simulator.flash import Flash

_ATTEMPTS: Final = 10
_POLLS: Final = 10
_INT32_MAX: Final = 2**31 - 1
_ACCEPTED: Final = 202
_OK: Final = 200


class CheckInFailed(Exception):
    """The answer does not count as a check-in."""


class BoardStopped(Exception):
    """The board was switched off."""


@dataclass(frozen=True, slots=True)
class BoardTimes:
    """The seconds that the firmware waits."""

    first_retry: float = 10.0
    """After a failed check-in; twice as long after each further one."""
    poll: float = 3.0
    """After an answer that the board was not claimed yet."""
    poll_retry: float = 10.0
    """After any other answer."""
    answer: float = 30.0


@dataclass(frozen=True, slots=True)
class Activation:
    """The code of an unclaimed board, as it shows it."""

    code: str
    message: str
    challenge: str


@dataclass(frozen=True, slots=True)
class MqttSettings:
    """The settings of the board's MQTT connection."""

    host: str
    port: int
    client_id: str
    user_name: str
    password: str
    keepalive: int
    publish_topic: str


@dataclass
class StockBoard:
    """A board with an OTA address, which a person typed on its own page."""

    flash: Flash
    ota_url: str
    board: str = "bread-compact-wifi"
    version: str = "2.4.2"
    language: str = "en-US"
    ssid: str = "home"
    times: BoardTimes = field(default_factory=BoardTimes)
    pause: Callable[[float], bool] = lambda _seconds: False
    """Wait for seconds. Return True if the board was switched off meanwhile."""
    trace: Trace = lambda _line: None
    show: Callable[[Activation], None] = lambda _activation: None
    firmware_offer: tuple[str, str] | None = None
    """The version and URL of the last check-in's offer, if it is newer."""

    def __post_init__(self) -> None:
        self.address = str(self.flash.namespace("efuse").get("mac") or random_address())
        self.flash.write("efuse", "mac", self.address)
        self.client_id = str(self.flash.namespace("board").get("uuid") or uuid4())
        self.flash.write("board", "uuid", self.client_id)

    def start(self) -> MqttSettings | None:
        """Check in until the board is claimed. Return its settings, or None if there are none.

        A board that has installed new firmware restarts, and checks in again.
        """
        while True:
            activation = self._check_in_with_retries()
            if self.firmware_offer and self.install():
                continue
            if activation is None:
                return self.settings()
            self.show(activation)
            self._poll(activation)

    def install(self) -> bool:
        """Download and install the offered firmware. Return False if that failed: the board goes on with its own."""
        version, url = self.firmware_offer or ("", "")
        self.firmware_offer = None
        if download(url, seconds=self.times.answer, trace=self.trace) is None:
            return False
        self.version = version
        return True

    def check_in(self) -> Activation | None:
        """Check in once. Return the activation that the answer asks for. Raise CheckInFailed."""
        if "://" not in self.ota_url:
            return None  # the firmware takes this for a success
        try:
            answer = self._post(self.ota_url, self._description())
        except NoAnswer as failure:
            raise CheckInFailed(str(failure)) from None
        if answer.status != _OK:
            raise CheckInFailed(f"status {answer.status}")
        try:
            content = json.loads(answer.body)
        except ValueError:
            raise CheckInFailed("the answer is not JSON") from None
        return self._apply(content if isinstance(content, dict) else {})

    def activate(self) -> int:
        """Ask once whether the board was claimed. Return the status, 0 without an answer."""
        separator = "" if self.ota_url.endswith("/") else "/"
        try:
            return self._post(f"{self.ota_url}{separator}activate", b"{}").status
        except NoAnswer:
            return 0

    def settings(self) -> MqttSettings | None:
        """Return the settings in the flash. Raise FirmwareAbort if the firmware cannot parse the broker's address."""
        stored = self.flash.namespace("mqtt")
        endpoint = str(stored.get("endpoint", ""))
        if not endpoint:
            return None
        try:
            host, port = parse_endpoint(endpoint)
        except ValueError as error:
            raise FirmwareAbort(str(error)) from None
        text = {name: str(stored.get(name, "")) for name in ("client_id", "username", "password", "publish_topic")}
        keepalive = stored.get("keepalive")
        return MqttSettings(
            host,
            port,
            text["client_id"],
            text["username"],
            text["password"],
            keepalive if isinstance(keepalive, int) else 240,
            text["publish_topic"],
        )

    def _check_in_with_retries(self) -> Activation | None:
        """Check in like the firmware: after ten failures, go on with the settings in the flash."""
        wait = self.times.first_retry
        for _ in range(_ATTEMPTS):
            try:
                return self.check_in()
            except CheckInFailed:
                self._wait(wait)
                wait *= 2
        return None

    def _poll(self, activation: Activation) -> None:
        for _ in range(_POLLS):
            status = self.activate() if activation.challenge else 0
            if status == _OK:
                return
            self._wait(self.times.poll if status == _ACCEPTED else self.times.poll_retry)

    def _wait(self, seconds: float) -> None:
        if self.pause(seconds):
            raise BoardStopped

    def _post(self, url: str, body: bytes) -> BoardAnswer:
        headers = {
            "Activation-Version": "1",
            "Device-Id": self.address,
            "Client-Id": self.client_id,
            "User-Agent": f"{self.board}/{self.version}",
            "Accept-Language": self.language,
            "Content-Type": "application/json",
        }
        return post(url, headers, body, seconds=self.times.answer, trace=self.trace)

    def _description(self) -> bytes:
        """Return the body of a check-in. The firmware puts texts such as the SSID in unescaped."""
        board = f'{{"type":"{self.board}","name":"{self.board}","ssid":"{self.ssid}","rssi":-52,"channel":6}}'
        application = (
            f'{{"name":"xiaozhi","version":"{self.version}","idf_version":"v5.5.2","elf_sha256":"{"0" * 64}"}}'
        )
        return (
            f'{{"version":2,"language":"{self.language}","flash_size":16777216,"minimum_free_heap_size":"8318916",'
            f'"mac_address":"{self.address}","uuid":"{self.client_id}","chip_model_name":"esp32s3",'
            f'"chip_info":{{"model":9,"cores":2,"revision":2,"features":18}},"application":{application},'
            f'"partition_table":[],"ota":{{"label":"ota_0"}},"board":{board}}}'
        ).encode()

    def _apply(self, content: dict[str, Any]) -> Activation | None:
        for namespace in ("mqtt", "websocket"):
            values = _member(content, namespace)
            for name, value in values.items() if isinstance(values, dict) else ():
                if isinstance(value, str | int) and not isinstance(value, bool):
                    self.flash.write(namespace, name, value)
        self._read_firmware_offer(_member(content, "firmware"))
        return _activation(_member(content, "activation"))

    def _read_firmware_offer(self, offer: Any) -> None:
        version, url = _member(offer, "version"), _member(offer, "url")
        self.firmware_offer = None
        if isinstance(version, str) and version:
            is_newer = parse_version(version) > parse_version(self.version)
            if is_newer and isinstance(url, str) and url:
                self.firmware_offer = version, url


def parse_version(version: str) -> list[int]:
    """Return the numbers of a version, compared one by one. Raise FirmwareAbort where the firmware aborts."""
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or int(digits) > _INT32_MAX:
            raise FirmwareAbort(f"'{version}' is not a version")
        numbers.append(int(digits))
    return numbers


def _activation(content: Any) -> Activation | None:
    texts = [_member(content, name) for name in ("code", "message", "challenge")]
    code, message, challenge = (each if isinstance(each, str) else "" for each in texts)
    return Activation(code, message, challenge) if code or challenge else None


def _member(content: Any, name: str) -> Any:
    """Return the member of an object. The firmware matches names without case."""
    if not isinstance(content, dict):
        return None
    return next((value for key, value in content.items() if key.lower() == name), None)


def random_address() -> str:
    """Return a hardware address of the maker of the chips."""
    return "a0:85:e3:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(3))
