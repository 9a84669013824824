"""A broker and its data plane in their own process, at given ports, so that tests can kill them."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import uvicorn

from infra.local.iot.broker.authorization import FleetAccessRules
from infra.local.iot.broker.data_plane import DataPlaneApp
from infra.local.iot.broker.local_broker import LocalBroker
from infra.local.sockets import listen
from tests.helpers.mqtt_client import PATIENT

if TYPE_CHECKING:
    from infra.local.iot.broker.authorization import ClientIdentity


async def _admit_all(_: ClientIdentity) -> bool:
    return True


def main(mqtt_port: int, plane_port: int, token: str, *unlimited: str) -> None:
    """Serve until killed."""
    limits = replace(PATIENT, publishes_per_second=None) if unlimited else PATIENT
    broker = LocalBroker(listen("127.0.0.1", mqtt_port), FleetAccessRules(token, _admit_all), limits)
    plane = listen("127.0.0.1", plane_port)
    application = DataPlaneApp(broker.broker, token)
    settings = uvicorn.Config(application, lifespan="off", log_level="warning", access_log=False)

    async def serve(_: object) -> None:
        print("ready", flush=True)
        await uvicorn.Server(settings).serve(sockets=[plane])

    asyncio.run(asyncio.to_thread(broker.run(serve).result))


main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
