"""Many devices in one loop, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final, TypeVar

from infra.local.file_limits import raise_open_files
from infra.local.mqtt.client import ConnectRefused
from infra.local.simulator.device import DeviceModel, SimulatedDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from types import TracebackType

_AT_ONCE: Final = 100

Result = TypeVar("Result")


class Fleet:
    """Devices that stay connected, and come back, until the fleet is closed."""

    def __init__(self, host: str, port: int, device_ids: Sequence[str], model: DeviceModel | None = None) -> None:
        raise_open_files()
        self._host, self._port = host, port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._thread.start()
        self._living: list[asyncio.Task[None]] = []
        self.devices = self._ask(self._make(device_ids, model or DeviceModel()))
        self._by_id = {device.device_id: device for device in self.devices}

    def __getitem__(self, device_id: str) -> SimulatedDevice:
        """The device of this id."""
        return self._by_id[device_id]

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def connected(self) -> int:
        """How many are connected."""
        return sum(device.connected for device in self.devices)

    def start(self) -> None:
        """Connect all devices, a hundred at a time; those that are not let in try again by themselves."""
        self._ask(self._start())

    def close(self) -> None:
        """Have all devices leave."""
        self._ask(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, action: Callable[[], Result]) -> Result:
        """Do something to a device, in its own thread."""

        async def act() -> Result:
            return action()

        return self._ask(act())

    def _ask(self, question: Coroutine[None, None, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(question, self._loop).result()

    async def _make(self, device_ids: Sequence[str], model: DeviceModel) -> list[SimulatedDevice]:
        return [SimulatedDevice(device_id, model) for device_id in device_ids]

    async def _start(self) -> None:
        turn = asyncio.Semaphore(_AT_ONCE)

        async def connect(device: SimulatedDevice) -> None:
            async with turn:
                try:
                    await device.connect(self._host, self._port)
                except (OSError, TimeoutError, ConnectRefused):
                    return

        await asyncio.gather(*map(connect, self.devices))
        self._living = [asyncio.create_task(device.live(self._host, self._port)) for device in self.devices]

    async def _stop(self) -> None:
        for device in self.devices:
            device.stop()
        # Whoever ends it may not have waited until all were connected.
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
