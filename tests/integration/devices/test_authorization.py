"""A device may use only its own two topics: by the template's policy, by the authorizer, by the broker."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import Any
from uuid import uuid4

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from boards import authorizer, provisioning
from infra.local.functions import LambdaContext
from infra.local.iot.broker.authorization import ClientIdentity, FleetAccessRules
from shared.devices.ids import may_be_device, may_be_registered
from shared.devices.registry import registry
from tests.helpers.iot_policies import ARN, RESOURCES, allows, resolved
from tests.helpers.mqtt_client import admit_all

DEVICE_POLICY = resolved(RESOURCES["DevicePolicy"]["Properties"]["PolicyDocument"])
CLAIM_POLICY = resolved(RESOURCES["DeviceClaimPolicy"]["Properties"]["PolicyDocument"])
BROKER = FleetAccessRules("backend's token", admit_all)


def by_certificate(client_id: str, thing: str | None) -> dict[str, str]:
    """Return the policy variables of a connection with a certificate, which `thing` may be attached to."""
    if thing != client_id:
        return {"iot:ClientId": client_id}
    return {
        "iot:ClientId": client_id,
        "iot:Connection.Thing.ThingName": thing,
        "iot:Connection.Thing.IsAttached": "true",
    }


def by_policy(policy: dict[str, Any], client_id: str, thing: str | None, action: str, name: str) -> bool:
    kind = {"Connect": "client", "Subscribe": "topicfilter"}.get(action, "topic")
    return allows(policy, f"iot:{action}", f"{ARN}:{kind}/{name}", by_certificate(client_id, thing))


def by_broker(client_id: str, action: str, name: str) -> bool:
    client = ClientIdentity(client_id)
    match action:
        case "Connect":
            return name == client_id and asyncio.run(BROKER.connect(client))
        case "Publish":
            return BROKER.publish(client, name)
        case "Subscribe":
            return BROKER.subscribe(client, name)
    return BROKER.receive(client, name)


def authorized(device_id: str) -> dict[str, Any]:
    """Return the authorizer's policy for a device of this id."""
    policy: dict[str, Any] = authorizer._policy(ARN, device_id)
    return policy


OWN = {
    ("Connect", "lamp"),
    ("Publish", "devices/lamp/up"),
    ("Subscribe", "devices/lamp/down"),
    ("Receive", "devices/lamp/down"),
}
NAMES = [
    "lamp",
    "lamp2",
    "Lamp",
    "",
    "*",
    "kho-backend-1",
    "kho-claim-1",
    *(
        f"devices/{each}"
        for each in (
            *(
                "lamp/up",
                "lamp/down",
                "lamp2/up",
                "lamp2/down",
                "+/up",
                "+/down",
                "#",
                "+/+",
                "lamp/#",
                "lamp/+",
                "*/up",
            ),
            *("*/down", "lamp/*", "lamp", "lamp/", "lamp/up/", "lamp/up/x", "lamp/down/x", "/lamp/up", "lam?/up"),
            *(
                "lamp/../lamp2/up",
                "../lamp2/down",
                "lamp/down/../../lamp2/down",
                "lamp%2Fup",
                "lamp2%2Fdown",
                "%2A/down",
            ),
            *("LAMP/up", "lamp\u200b/up", "lamp /up", "${iot:Connection.Thing.ThingName}/up", "lamp\n/up", "lamp/up\n"),
        )
    ),
    "/devices/lamp/up",
    "devices//lamp/up",
    "$aws/events/presence/connected/lamp",
    "$aws/events/#",
    "$aws/things/lamp/shadow/update",
    "$share/g/devices/lamp/down",
    "$aws/rules/kho/devices/lamp2/up",
    "+/lamp/down",
    "#",
    "+",
]
ACTIONS = ["Connect", "Publish", "Subscribe", "Receive"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("action", ACTIONS)
def test_policy_authorizer_and_broker_allow_only_own_topics(action: str, name: str) -> None:
    wanted = (action, name) in OWN
    assert by_policy(DEVICE_POLICY, "lamp", "lamp", action, name) is wanted
    assert by_policy(authorized("lamp"), "lamp", None, action, name) is wanted
    assert by_broker("lamp", action, name) is wanted


@given(
    st.text("ab*?+#/.%$-_: ", max_size=6),
    st.sampled_from(ACTIONS),
    st.lists(st.sampled_from(["devices", "up", "down", "a", "b", "+", "#", "*", "..", "%2F", ""]), max_size=4),
)
def test_policy_authorizer_and_broker_agree_on_every_id(client_id: str, action: str, levels: list[str]) -> None:
    assert may_be_device(client_id) or not may_be_registered(client_id)
    for name in ("/".join(levels), client_id, f"devices/{client_id}/up", f"devices/{client_id}/down"):
        allowed = by_broker(client_id, action, name)
        if may_be_registered(client_id):
            assert by_policy(DEVICE_POLICY, client_id, client_id, action, name) is allowed
            assert by_policy(authorized(client_id), client_id, None, action, name) is allowed
        if action == "Connect":
            assert not allowed or may_be_device(client_id)


@pytest.mark.parametrize(("action", "name"), sorted(OWN))
def test_certificate_without_thing_is_denied(action: str, name: str) -> None:
    """Its thing variables are then undefined, as when it connects under another client id."""
    assert not by_policy(DEVICE_POLICY, "lamp", None, action, name)
    assert not by_policy(DEVICE_POLICY, "lamp", "lamp2", action, name)


@pytest.mark.parametrize(
    "odd", ["*", "?", "+", "#", "a/b", "$aws", "a+", "", "kho-backend-", "a\0", "x" * 129, "é" * 65]
)
def test_wildcard_ids_are_rejected(odd: str) -> None:
    assert not may_be_registered(odd)
    if odd not in ("*", "?"):  # no wildcards in MQTT: ordinary characters to the broker
        assert not by_broker(odd, "Connect", odd)


def test_claim_certificate_may_only_provision() -> None:
    for action, name in (
        ("Connect", "kho-claim-1"),
        ("Publish", "$aws/certificates/create/json"),
        ("Subscribe", "$aws/certificates/create/json/accepted"),
        ("Publish", "$aws/provisioning-templates/kho/provision/json"),
        ("Receive", "$aws/provisioning-templates/kho/provision/json/rejected"),
    ):
        assert by_policy(CLAIM_POLICY, "kho-claim-1", None, action, name)
    for action in ACTIONS:
        for name in NAMES:
            assert by_policy(CLAIM_POLICY, "kho-claim-1", None, action, name) is (
                (action, name) == ("Connect", "kho-claim-1")
            )


def test_provisioned_certificate_has_policy_and_verified_thing_name() -> None:
    body = yaml.safe_load(RESOURCES["DeviceProvisioning"]["Properties"]["TemplateBody"]["Fn::Sub"])
    assert body["Resources"]["thing"]["Properties"]["ThingName"] == {"Ref": "SerialNumber"}
    assert body["Resources"]["policy"]["Properties"]["PolicyName"] == "${DevicePolicy}"
    hook = RESOURCES["DeviceProvisioning"]["Properties"]["PreProvisioningHook"]
    assert "BoardsProvisioning" in str(hook["TargetArn"])


def connecting(client_id: str, user_name: str, password: str) -> dict[str, Any]:
    """Return IoT Core's request to the authorizer."""
    return {
        "protocols": ["tls", "mqtt"],
        "signatureVerified": False,
        "protocolData": {
            "tls": {"serverName": "devices.example"},
            "mqtt": {
                "username": user_name,
                "password": base64.b64encode(password.encode()).decode(),
                "clientId": client_id,
            },
        },
        "connectionMetadata": {"id": "b9c4f2a0-6f4e-4a3b-9a37-0c1c1f2d3e4f"},
    }


@pytest.fixture
def registered(tenant: str) -> tuple[str, str]:
    """Register a device and return its id and password."""
    device, password = registry().register(tenant, f"board-{uuid4().hex}")
    return device.id, password


def authorizer_answer(event: dict[str, Any]) -> dict[str, Any]:
    """Return the authorizer's answer."""
    return authorizer.handler(event, LambdaContext("boards-authorizer"))


def test_authorizer_accepts_registered_device(registered: tuple[str, str]) -> None:
    device_id, password = registered
    answer = authorizer_answer(connecting(device_id, device_id, password))
    assert answer["isAuthenticated"] is True
    assert re.fullmatch("[A-Za-z0-9]{1,128}", answer["principalId"])
    assert 300 <= answer["refreshAfterInSeconds"] <= answer["disconnectAfterInSeconds"] <= 86_400
    [policy] = answer["policyDocuments"]
    assert {(each["Action"], each["Resource"].removeprefix(ARN)) for each in policy["Statement"]} == {
        ("iot:Connect", f":client/{device_id}"),
        ("iot:Publish", f":topic/devices/{device_id}/up"),
        ("iot:Subscribe", f":topicfilter/devices/{device_id}/down"),
        ("iot:Receive", f":topic/devices/{device_id}/down"),
    }


def test_authorizer_rejects_all_others(registered: tuple[str, str]) -> None:
    device_id, password = registered
    refused = {"isAuthenticated": False}
    assert authorizer_answer(connecting(device_id, device_id, password[:-1])) == refused
    assert authorizer_answer(connecting(device_id, device_id, "")) == refused
    assert authorizer_answer(connecting("other", device_id, password)) == refused
    assert authorizer_answer(connecting(device_id, "other", password)) == refused
    assert authorizer_answer(connecting("*", "*", password)) == refused
    assert authorizer_answer({"protocols": ["tls"], "protocolData": {}}) == refused
    assert authorizer_answer({"protocols": ["http"]}) == refused
    broken = connecting(device_id, device_id, password)
    broken["protocolData"]["mqtt"]["password"] = "no base64!"
    assert authorizer_answer(broken) == refused
    registry().revoke(device_id)
    assert authorizer_answer(connecting(device_id, device_id, password)) == refused


def test_only_registered_devices_get_certificates(registered: tuple[str, str]) -> None:
    device_id, password = registered

    def claimed(**parameters: str) -> bool:
        event = {"certificateId": "0" * 64, "clientId": "kho-claim-1", "parameters": parameters}
        answer = provisioning.handler(event, LambdaContext("boards-provisioning"))
        assert answer.keys() == {"allowProvisioning"}
        return bool(answer["allowProvisioning"])

    assert claimed(SerialNumber=device_id, Password=password)
    assert not claimed(SerialNumber=device_id, Password=password.upper() + "x")
    assert not claimed(SerialNumber=device_id)
    assert not claimed(SerialNumber="other", Password=password)
    assert not claimed(Password=password)
    assert not claimed()
    registry().revoke(device_id)
    assert not claimed(SerialNumber=device_id, Password=password)
