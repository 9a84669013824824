"""Connections and published messages, for callers that know the secret path."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import urllib3

from infra.local.iot.mqtt.packets import MQTT_5, Disconnect, Publish, Will
from infra.local.iot.mqtt.reason_codes import ReasonCode
from tests.helpers.data_plane_errors import data_plane_error
from tests.helpers.mqtt_client import DOWN, EmbeddedBroker, client

if TYPE_CHECKING:
    from infra.local.iot.iot_core import EmbeddedIotCore


def test_get_connection_reports_presence(served: EmbeddedBroker, plane: Any) -> None:
    before = int(time.time() * 1000)
    assert data_plane_error(plane.get_connection, clientId="never-here")[:2] == (404, "ResourceNotFoundException")
    with client(served, "a b-ü", keepalive=240):
        connection = plane.get_connection(clientId="a b-ü")
        del connection["ResponseMetadata"]
        assert before <= connection.pop("connectedSince") <= time.time() * 1000
        assert connection == {
            "clientId": "a b-ü",
            "connected": True,
            "cleanSession": True,
            "keepAliveDuration": 240,
        }
    connection = plane.get_connection(clientId="a b-ü")
    assert (connection["connected"], connection["disconnectReason"]) == (False, "CONNECTION_LOST")
    assert before <= connection["disconnectedSince"] <= time.time() * 1000


def test_delete_connection_disconnects_the_client(served: EmbeddedBroker, plane: Any) -> None:
    with served.heard("devices/lamp/up") as wills:
        with client(served, "lamp", MQTT_5, will=Will("devices/lamp/up", b"gone")) as lamp:
            plane.delete_connection(clientId="lamp", preventWillMessage=True)
            assert lamp.expect(Disconnect).reason == ReasonCode.ADMINISTRATIVE_ACTION
            assert lamp.receive() is None
        assert plane.get_connection(clientId="lamp")["disconnectReason"] == "API_INITIATED_DISCONNECT"
        assert wills.empty()
    assert data_plane_error(plane.delete_connection, clientId="missing")[0] == 404


def test_published_messages_reach_subscribers(served: EmbeddedBroker, plane: Any) -> None:
    with client(served, "lamp") as lamp:
        lamp.subscribe(DOWN)
        plane.publish(topic=DOWN, qos=1, payload=b"x", retain=False)
        assert lamp.expect(Publish).payload == b"x"
        assert data_plane_error(plane.publish, topic="devices/+/down")[0] == 400
        refused = data_plane_error(plane.publish, topic=DOWN, payload=b"kept", retain=True)
        assert refused == (400, "InvalidRequestException", "The local data plane does not support retain")
        assert lamp.settle() == []
        assert data_plane_error(plane.list_subscriptions, clientId="lamp")[0] == 404


def test_data_plane_path_is_secret(core: EmbeddedIotCore, served: EmbeddedBroker) -> None:
    """A web page in a browser on this machine can send requests here, but cannot guess the path."""
    base, _, token = core.data_plane_url.rpartition("/")
    with client(served, "lamp") as lamp, urllib3.PoolManager(retries=False) as http:
        query = f"connections/lamp/messages?topic={DOWN}"
        for path in (query, f"x/{query}", f"{token[:-1]}/{query}", f"{token.swapcase()}/{query}", ""):
            assert http.request("POST", f"{base}/{path}", body=b"x").status == 403
        assert lamp.settle() == []
        assert http.request("POST", f"{core.data_plane_url}/{query}", body=b"x").status == 200
        assert lamp.expect(Publish).payload == b"x"
        assert http.request("POST", f"{core.data_plane_url}/things/x/shadow").status == 404
