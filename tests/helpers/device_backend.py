"""Devices for tests: a broker with its data plane, the backend in this process, and simulated devices."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest

from infra.local.functions import Functions
from infra.local.iot.broker_transport import BrokerTransport
from infra.local.iot.iot_core import EmbeddedIotCore, LocalIotCore, configure_functions, run_embedded, use_external
from infra.local.iot.rules.dispatcher import RuleDispatcher
from infra.local.iot.simulator.device import DeviceModel
from infra.local.iot.simulator.fleet import Fleet
from infra.local.iot.simulator.quirks import FIRMWARE
from infra.local.sockets import listen
from infra.local.template import load
from shared.aws.dynamodb import Table
from shared.devices.mqtt.client_factory import device_client
from shared.devices.mqtt.data_plane import data_plane
from shared.devices.mqtt.transport import MqttTransport
from shared.devices.notifications import Notifications
from shared.devices.registry import registry
from shared.devices.sessions import SessionStore
from shared.devices.tool_catalogue import CatalogueStore
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.errors import KhoError
from tests.helpers.environment import adopt_environment
from tests.helpers.mqtt_client import PATIENT, RawMqttClient
from tests.helpers.patience import be_patient
from tests.helpers.wait import CEILING_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from infra.local.iot.broker.limits import Limits
    from infra.local.iot.simulator.device import SimulatedDevice as Simulated
    from infra.local.iot.simulator.quirks import Quirk
    from infra.local.template import RuleTrigger
    from shared.devices.device_client import DeviceClient
    from shared.devices.notifications import StoredNotification
    from shared.devices.registry import RegisteredDevice
    from shared.devices.tool_catalogue import DeviceTool
    from shared.devices.tool_result import DeviceToolResult

BACKEND_TOKEN = "word"
TIMEOUT_MS = int(CEILING_SECONDS * 1000)


@dataclass
class DeviceUnderTest:
    """One simulated device as the backend sees it. `down` and `up` are the recorded messages."""

    home: DeviceBackend
    fleet: Fleet
    down: list[dict[str, Any]] = field(default_factory=list)
    up: list[bytes] = field(default_factory=list)

    @property
    def simulated(self) -> Simulated:
        return self.fleet.devices[0]

    @property
    def id(self) -> str:
        return self.simulated.device_id

    @property
    def device(self) -> RegisteredDevice:
        device = registry().find_any_tenant(self.id)
        assert device
        return device

    @property
    def known(self) -> bool:
        """Return True if the backend knows the device."""
        return registry().find_any_tenant(self.id) is not None

    def notifications(self) -> list[StoredNotification]:
        """Return the notifications that the device has sent."""
        return Notifications(Table(config().devices_table), self.device.tenant_id, self.id).page(100, None)[0]

    @property
    def sessions(self) -> SessionStore:
        return SessionStore(Table(config().devices_table), self.device.tenant_id, self.id)

    @property
    def catalogues(self) -> CatalogueStore:
        return CatalogueStore(Table(config().devices_table), self.device.tenant_id, self.id)

    @property
    def runs(self) -> list[tuple[str, dict[str, Any]]]:
        return list(self.simulated.firmware.runs)

    def call(self, name: str, /, timeout_ms: int = TIMEOUT_MS, **arguments: Any) -> DeviceToolResult:
        """Return the backend's result of a call."""
        return self.home.talks.call(self.device, name, arguments, timeout_ms)

    def text(self, name: str, /, **arguments: Any) -> str:
        """Return the text of a call's result."""
        text: str = self.call(name, **arguments).content[0]["text"]
        return text

    def call_error(self, name: str, /, timeout_ms: int = TIMEOUT_MS, **arguments: Any) -> KhoError:
        """Return the error that the backend raises for a call."""
        with pytest.raises(KhoError) as refusal:
            self.call(name, timeout_ms, **arguments)
        return refusal.value

    def tools(self, *, with_user_tools: bool = False) -> list[DeviceTool]:
        """Return the tools that the backend lists."""
        return self.home.talks.tools(self.device, with_user_tools=with_user_tools)[1]

    def sent(self, method: str) -> list[dict[str, Any]]:
        """Return the messages of a method that the device has received."""
        payloads = [each["payload"] for each in self.down if each["type"] == "mcp"]
        return [each for each in payloads if each["method"] == method]

    def drop(self) -> None:
        """Drop the device's connection without a DISCONNECT."""
        self.fleet.do(self.simulated.vanish)


@dataclass
class DeviceBackend:
    """The backend of this process and its broker."""

    core: EmbeddedIotCore

    @property
    def port(self) -> int:
        return int(self.core.mqtt_url.rpartition(":")[2])

    @property
    def talks(self) -> DeviceClient:
        return device_client()

    @contextmanager
    def device(
        self, *quirks: Quirk, plain: bool = False, start: bool = True, **about: Any
    ) -> Iterator[DeviceUnderTest]:
        """Yield a connected device, which reconnects immediately when its connection is lost."""
        options: dict[str, Any] = {
            "reconnect_seconds": (0.05, 0.1),
            "connect_seconds": CEILING_SECONDS,
            "hello_seconds": 10 * CEILING_SECONDS,
        } | about
        model = DeviceModel(frozenset(quirks) | (frozenset() if plain else FIRMWARE), **options)
        device_id = f"esp32-{uuid4().hex[:12]}"
        with Fleet("127.0.0.1", self.port, [device_id], model) as fleet:
            one = DeviceUnderTest(self, fleet)
            take = one.simulated._on_message

            def overhear(topic: str, payload: bytes) -> None:
                one.down.append(json.loads(payload))
                take(topic, payload)

            one.simulated._on_message = overhear  # type: ignore[method-assign,assignment]  # the device still receives the message
            publish = one.simulated._publish

            def overhear_too(payload: bytes) -> None:
                one.up.append(payload)
                publish(payload)

            one.simulated._publish = overhear_too  # type: ignore[method-assign]
            if start:
                fleet.start()
            yield one


@contextmanager
def running_device_backend(
    limits: Limits = PATIENT,
    *,
    rules: bool = False,
    broker_url: str = "",
    clock: Callable[[], float] | None = None,
    in_process: bool = False,
) -> Iterator[DeviceBackend]:
    """Yield a broker and a backend that uses it. With the template's rules, the workers receive device events too.

    The backend connects to the broker as when deployed, or calls it `in_process` as `kho serve` does.
    """
    broker: AbstractContextManager[LocalIotCore] = (
        use_external(broker_url, BACKEND_TOKEN)
        if broker_url
        else run_embedded(listen("127.0.0.1", 0), limits, authorizing=False, clock=clock)
    )
    with broker as core, device_backend_at(core, load().rules if rules else [], in_process=in_process) as home:
        yield home


@contextmanager
def device_backend_at(
    core: LocalIotCore, rules: Sequence[RuleTrigger], *, in_process: bool = False
) -> Iterator[DeviceBackend]:
    """Yield a backend that uses the broker, and workers that receive what the rules select."""
    with pytest.MonkeyPatch.context() as environment, ExitStack() as stack:
        be_patient(environment)
        environment.setattr(runtime, "environment", runtime.environment)  # so that monkeypatch restores it
        configure_functions(core)
        if in_process:
            assert isinstance(core, EmbeddedIotCore)
            environment.setattr(runtime, "device_transport", BrokerTransport(core.broker))
        adopt_environment(environment)
        reset_settings()
        stack.callback(reset_settings)
        line = device_client().rpc.transport
        if isinstance(line, MqttTransport):
            stack.callback(line.close)
            stack.callback(close_line)
        if rules:
            patient = {name: replace(function, timeout=CEILING_SECONDS) for name, function in load().functions.items()}
            functions = Functions(patient)
            stack.callback(functions.close)
            stack.callback(RuleDispatcher(rules, core.broker, functions).close)
            if not core.data_plane_url:
                _wait_until_heard(core)
        yield DeviceBackend(cast("EmbeddedIotCore", core))  # other brokers lack attributes that those tests do not use


def _wait_until_heard(core: LocalIotCore) -> None:
    """Return once an external broker delivers published messages to the rules: it does not report its subscription."""
    received = threading.Event()
    stop = core.broker.listen("devices/+/up", lambda _: received.set())
    with RawMqttClient(int(core.mqtt_url.rpartition(":")[2])) as probe:
        assert probe.connect("probe").reason == 0

        def publish() -> bool:
            probe.publish("devices/probe/up", b"{}")
            return received.wait(0.05)

        until(publish)
    stop()


def timed_out(one: DeviceUnderTest, name: str, when: Callable[[], object], **arguments: Any) -> KhoError:
    """Return the error of a call that times out as soon as `when` holds."""
    exchange = one.home.talks.rpc
    real = exchange.clock
    with ThreadPoolExecutor(1) as caller:
        call = caller.submit(one.call_error, name, **arguments)
        try:
            until(when)
            exchange.clock = lambda: real() + TIMEOUT_MS / 1000
            return call.result()
        finally:
            exchange.clock = real


def close_line() -> None:
    """Close this process's connections, because another fixture may have reloaded the settings meanwhile."""
    line = device_client().rpc.transport
    assert isinstance(line, MqttTransport)
    line.close()


def reset_settings() -> None:
    """Reload this process's settings."""
    for remembered in (config, device_client, data_plane):
        remembered.cache_clear()
