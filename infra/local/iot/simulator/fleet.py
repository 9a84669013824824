"""A fleet of simulated devices in one event loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final, TypeVar

from infra.local.iot.mqtt.client import ConnectRefused
from infra.local.iot.simulator.device import DeviceModel, SimulatedDevice
from infra.local.sockets import raise_open_files

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from types import TracebackType

_CONCURRENT_CONNECTS: Final = 100

Result = TypeVar("Result")


class Fleet:
    """Devices that stay connected until the fleet is closed, of one model or each of its own."""

    def __init__(
        self,
        host: str,
        port: int,
        device_ids: Sequence[str],
        model: DeviceModel | Callable[[str], DeviceModel] | None = None,
    ) -> None:
        raise_open_files()
        self.host, self.port = host, port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._thread.start()
        self._tasks: list[asyncio.Task[None]] = []
        self.devices = self._run(self._create(device_ids, model or DeviceModel()))
        self._by_id = {device.device_id: device for device in self.devices}

    def __getitem__(self, device_id: str) -> SimulatedDevice:
        """Return the device of this id."""
        return self._by_id[device_id]

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def connected(self) -> int:
        """The number of connected devices."""
        return sum(device.connected for device in self.devices)

    def start(self) -> None:
        """Connect all devices, a hundred at a time. Those that fail retry by themselves."""
        self._run(self._start())

    def close(self) -> None:
        """Disconnect all devices and stop the thread."""
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, action: Callable[[], Result]) -> Result:
        """Run an action in the devices' thread and return its result."""

        async def act() -> Result:
            return action()

        return self._run(act())

    def _run(self, coroutine: Coroutine[None, None, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _create(
        self, device_ids: Sequence[str], model: DeviceModel | Callable[[str], DeviceModel]
    ) -> list[SimulatedDevice]:
        return [SimulatedDevice(each, model(each) if callable(model) else model) for each in device_ids]

    async def _start(self) -> None:
        semaphore = asyncio.Semaphore(_CONCURRENT_CONNECTS)

        async def connect(device: SimulatedDevice) -> None:
            async with semaphore:
                try:
                    await device.connect(self.host, self.port)
                except (OSError, TimeoutError, ConnectRefused):
                    return

        await asyncio.gather(*map(connect, self.devices))
        self._tasks = [asyncio.create_task(device.run(self.host, self.port)) for device in self.devices]

    async def _stop(self) -> None:
        for device in self.devices:
            device.stop()
        # The fleet may be closed before all devices have connected.
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
