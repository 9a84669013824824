"""A device revoked in a deployed stack is disconnected immediately, and its certificates are revoked."""

from __future__ import annotations

from uuid import uuid4

import boto3
import pytest
from moto import mock_aws

from infra.cli.devices.broker import broker_endpoint, disconnect
from infra.cli.target import DataTarget
from infra.local.iot_core import run_embedded
from infra.local.sockets import listen
from tests.helpers.mqtt_client import PATIENT, RawMqttClient

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


def test_stock_firmware_endpoint_is_the_domain_configuration() -> None:
    with mock_aws():
        boto3.client("iot").create_domain_configuration(
            domainConfigurationName="kho-devices", domainName="devices.example", serviceType="DATA"
        )
        assert broker_endpoint(DEPLOYED) == "devices.example:8883"


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])
