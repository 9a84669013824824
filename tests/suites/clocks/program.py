"""`kho` for a server under libfaketime, whose webhooks go to a receiver of the test."""

from __future__ import annotations

import json
import os
import select
import socket
import ssl
import time
from functools import cache
from typing import SupportsIndex

from infra.clients.cli.main import main
from shared.devices import webhooks
from shared.platform.public_address import PublicClient
from tests.helpers.webhook_receiver import PUBLIC


def sleep(seconds: float | SupportsIndex) -> None:
    """Sleep for a duration: libfaketime 0.9.10 refuses to sleep until a monotonic time, as Python does."""
    select.select([], [], [], float(seconds))


def connect(_address: tuple[str, int], seconds: float) -> socket.socket:
    """Connect to the test's receiver, wherever the client wanted to."""
    host, port = json.loads(os.environ["KHO_TEST_RECEIVER"])
    return socket.create_connection((host, port), seconds)


if __name__ == "__main__":
    time.sleep = sleep
    trusting = ssl.create_default_context(cafile=os.environ["KHO_TEST_AUTHORITY"])
    webhooks._client = cache(lambda: PublicClient(webhooks.LIMITS, lambda _host, _port: [PUBLIC], connect, trusting))
    main()
