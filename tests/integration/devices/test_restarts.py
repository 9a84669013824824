"""Tools that restart a device: their success has no reply, and their failure replies true."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from infra.local.iot.simulator.tools import standard_tools
from shared.rpc.errors import ToolFailed
from tests.helpers.device_backend import DeviceBackend, DeviceUnderTest, running_device_backend
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

REBOOT, UPGRADE = "self.reboot", "self.upgrade_firmware"
IMAGE = "https://firmware.example/xiaozhi.bin"


@pytest.fixture(scope="module")
def home() -> Iterator[DeviceBackend]:
    with running_device_backend(rules=True) as running:
        yield running


def wait_for_session(one: DeviceUnderTest) -> None:
    until(lambda: one.sessions.read().session)


def test_restart_is_a_success(home: DeviceBackend) -> None:
    with home.device() as one:
        wait_for_session(one)
        result = one.call(REBOOT)
        assert (result.content, result.isError) == ([{"type": "text", "text": "The device restarted."}], False)
        until(lambda: one.simulated.counters.connections == 2)
        assert one.runs == [(REBOOT, {})]


def test_update_is_a_success_with_the_new_version(home: DeviceBackend) -> None:
    with home.device() as one:
        wait_for_session(one)
        one.simulated.next_version = "2.5.0"
        result = one.call(UPGRADE, url=IMAGE)
        assert result.content[0]["text"] == "The device restarted with firmware 2.5.0; before, it was 2.4.0."
        assert result.isError is False
        assert one.runs == [(UPGRADE, {"url": IMAGE})]


def test_update_to_the_same_version_is_told_as_such(home: DeviceBackend) -> None:
    with home.device() as one:
        wait_for_session(one)
        one.simulated.next_version = "2.4.0"
        one.simulated.next_tools = standard_tools()[:3]
        result = one.call(UPGRADE, url=IMAGE)
        assert "2.4.0, as before" in result.content[0]["text"]
        assert len(one.tools()) == 3


def test_update_of_a_device_that_is_not_back_in_time(home: DeviceBackend) -> None:
    real = home.talks.rpc.clock
    with (
        home.device(reconnect_seconds=(3600.0, 3600.0)) as one,
        ThreadPoolExecutor(1) as caller,
        pytest.MonkeyPatch.context() as patch,
    ):
        wait_for_session(one)
        call = caller.submit(one.call, UPGRADE, url=IMAGE)
        until(lambda: one.runs)
        until(lambda: home.talks._ready.get((one.device.tenant_id, one.id)) is None)  # the lost connection was noticed
        patch.setattr(home.talks.rpc, "clock", lambda: real() + CEILING_SECONDS)
        result = call.result()
        assert "once the device is back" in result.content[0]["text"]
        assert result.isError is False


def test_update_that_could_not_be_downloaded_is_a_failure(home: DeviceBackend) -> None:
    with home.device() as one:
        wait_for_session(one)
        error = one.call_error(UPGRADE, url="https://firmware.invalid/xiaozhi.bin")
        assert (type(error), error.code) == (ToolFailed, "UPDATE_FAILED")
        assert one.simulated.counters.connections == 1


def test_update_requires_a_url(home: DeviceBackend) -> None:
    """Firmware declares the parameter's description as its default, and would download from that."""
    with home.device() as one:
        wait_for_session(one)
        error = one.call_error(UPGRADE)
        assert (error.code, [each["field"] for each in error.details]) == ("INVALID_PARAMS", ["arguments.url"])
        (tool,) = [each for each in one.tools(with_user_tools=True) if each.name == UPGRADE]
        assert tool.input_schema["required"] == ["url"]
        assert "default" not in tool.input_schema["properties"]["url"]
        assert one.runs == []
