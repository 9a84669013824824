"""IoT Core's features besides MQTT, through boto3 and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from infra.local.iot.iot_core import EmbeddedIotCore, run_embedded
from infra.local.sockets import listen
from tests.helpers.mqtt_client import PATIENT, EmbeddedBroker
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def core() -> Iterator[EmbeddedIotCore]:
    with run_embedded(listen("127.0.0.1", 0), PATIENT, authorizing=False) as running:
        yield running


@pytest.fixture(scope="module")
def served(core: EmbeddedIotCore) -> EmbeddedBroker:
    return EmbeddedBroker(core.broker, int(core.mqtt_url.rpartition(":")[2]))


@pytest.fixture(scope="module")
def plane(core: EmbeddedIotCore) -> Any:
    """Return boto3's client, device-server's only view of IoT Core."""
    settings = Config(retries={"total_max_attempts": 1}, read_timeout=CEILING_SECONDS)
    return boto3.client("iot-data", endpoint_url=core.data_plane_url, region_name="us-east-1", config=settings)
