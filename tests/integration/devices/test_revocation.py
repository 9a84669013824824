"""A device revoked in a deployed stack is disconnected immediately, and its certificates are revoked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

import boto3
import pytest
from moto import mock_aws

from infra.clients.cli.devices.broker import broker_endpoint, disconnect
from infra.clients.cli.target import DataTarget
from infra.local.iot.iot_core import run_embedded
from infra.local.sockets import listen
from tests.helpers.mqtt_client import PATIENT, RawMqttClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEPLOYED = DataTarget(stack="kho")


@pytest.mark.parametrize("kept", [True, False])
def test_revocation_disconnects_and_deactivates_certificates(monkeypatch: pytest.MonkeyPatch, *, kept: bool) -> None:
    device_id = f"lamp-{uuid4().hex}"
    with (
        run_embedded(listen("127.0.0.1", 0), PATIENT, authorizing=False) as core,
        RawMqttClient(_port(core.mqtt_url)) as lamp,
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL_IOT_DATA_PLANE", core.data_plane_url)
        assert lamp.connect(device_id).reason == 0
        with mock_aws():
            iot = boto3.client("iot")
            if kept:
                iot.create_thing(thingName=device_id)
                certificate = iot.create_keys_and_certificate(setAsActive=True)
                iot.attach_thing_principal(thingName=device_id, principal=certificate["certificateArn"])
            disconnect(DEPLOYED, device_id)
            if kept:
                described = iot.describe_certificate(certificateId=certificate["certificateId"])
                assert described["certificateDescription"]["status"] == "INACTIVE"
            disconnect(DEPLOYED, device_id)  # again, with nothing left to disconnect
        assert lamp.receive() is None


@pytest.fixture
def stack() -> Iterator[Callable[..., None]]:
    """Yield a function that deploys a stack with these outputs to an emulator."""

    def deploy(**outputs: str) -> None:
        template = {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {name: {"Value": value} for name, value in outputs.items()},
        }
        boto3.client("cloudformation").create_stack(StackName=DEPLOYED.stack, TemplateBody=json.dumps(template))

    with mock_aws():
        yield deploy


def test_stock_firmware_endpoint_is_the_stacks_domain_configuration(stack: Callable[..., None]) -> None:
    boto3.client("iot").create_domain_configuration(
        domainConfigurationName="made-up", domainName="devices.example", serviceType="DATA"
    )
    stack(DeviceEndpoint="made-up")
    assert broker_endpoint(DEPLOYED) == "devices.example:8883"


def test_a_stack_without_devices_has_no_endpoint_for_firmware(stack: Callable[..., None]) -> None:
    stack()
    with pytest.raises(SystemExit, match="IotEndpoint"):
        broker_endpoint(DEPLOYED)


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
