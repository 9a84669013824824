"""Calls to many simulated devices at a running server."""

from __future__ import annotations

import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tests.helpers.program import KHO, start
from tests.helpers.size import sized
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.helpers.kho_server import KhoServer

DEVICES = sized(20, full=1_000)
CALLS = sized(80, full=10_000)
CALLERS = sized(16, full=64)


@pytest.mark.stress
def test_each_call_to_a_fleet_gets_its_own_reply(
    server: KhoServer, record_property: Callable[[str, object], None]
) -> None:
    """Each call to a fleet gets its own reply, in any order of the replies."""
    simulate = ["devices", "simulate", "-n", str(DEVICES), "--data", str(server.data), "--quirk", "out-of-order"]
    with start(KHO, *simulate, stdout=subprocess.PIPE) as fleet:
        try:
            assert fleet.stdout
            output = fleet.stdout
            # A device whose first connection takes too long connects again by itself.
            all_connected = (f"{DEVICES} of {DEVICES} devices", f"{DEVICES} connected;")
            until(lambda: output.readline().startswith(all_connected))

            def is_own_reply(number: int) -> bool:
                device = f"sim-{number % DEVICES + 1}"
                call = {"device_id": device, "name": "self.test.echo", "arguments": {"text": f"call {number}"}}
                result = server.call("device-server/tools/call", **call, timeout_ms=25_000)
                return bool(result["content"] == [{"type": "text", "text": f"call {number}"}])

            with ThreadPoolExecutor(CALLERS) as callers:
                own = sum(callers.map(is_own_reply, range(CALLS)))
        finally:
            fleet.send_signal(signal.SIGINT)
    record_property("load", f"{CALLS:,} calls to {DEVICES:,} devices that reply out of order, {CALLERS} at once")
    record_property("outcome", f"{own:,} replies, each its own call's; 0 lost, 0 swapped")
    assert own == CALLS
