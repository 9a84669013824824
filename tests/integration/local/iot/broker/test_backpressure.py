"""Clients that do not read, and more clients than the broker has room for."""

from __future__ import annotations

import contextlib
import socket
import threading

from infra.local.iot.broker.limits import Limits
from infra.local.iot.mqtt.encoding import encode
from infra.local.iot.mqtt.packets import MQTT_3, Pingreq, Publish
from tests.helpers.mqtt_client import DOWN, RawMqttClient, backend, client, running_broker
from tests.helpers.wait import CEILING_SECONDS, until


def test_slow_reader_does_not_affect_other_clients() -> None:
    payload = b"x" * 100_000
    with (
        running_broker(Limits(publishes_per_second=None, connect_seconds=CEILING_SECONDS)) as served,
        client(served, "deaf") as deaf,
        client(served, "lamp") as lamp,
        backend(served) as home,
    ):
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        deaf.subscribe("devices/deaf/down")
        lamp.subscribe(DOWN)
        while not served.broker.broker.counters.dropped_slow:
            home.publish("devices/deaf/down", payload)
            home.publish(DOWN, b"tick")
            assert lamp.expect(Publish).payload == b"tick"
        assert deaf.expect(Publish).payload == payload  # it reads again


def test_flooding_client_that_never_reads_is_bounded_in_memory() -> None:
    limits = Limits(outbound_bytes=65_536, connect_seconds=CEILING_SECONDS)
    with running_broker(limits) as served, client(served, "lamp") as lamp:
        asker = client(served, "asker")
        (connection,) = [each for each in served.broker.broker._open_connections if each.client.client_id == "asker"]
        transport = connection.transport
        # Otherwise the system buffers the data that the client does not read.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        asker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

        def ask() -> None:
            with contextlib.suppress(OSError):  # the test closes the socket at its end
                while True:
                    asker.socket.sendall(encode(Pingreq(), MQTT_3) * 16_384)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            until(lambda: connection._outbox.full and not transport.is_reading())
            assert lamp.settle() == []
            for _ in range(3000):  # broker turns, enough to exceed the limit if it went on answering
                assert lamp.settle() == []
                assert transport.get_write_buffer_size() < 2 * limits.outbound_bytes
        finally:
            asker.socket.shutdown(socket.SHUT_RDWR)
            asking.join()
            asker.socket.close()


def test_connection_limit_is_enforced() -> None:
    with (
        running_broker(Limits(connections=2, connect_seconds=CEILING_SECONDS)) as served,
        client(served, "one"),
        client(served, "two") as two,
    ):
        with RawMqttClient(served.port) as three:
            assert three.receive() is None
        assert two.settle() == []


def test_limit_of_unauthenticated_connections_spares_authenticated_ones() -> None:
    with (
        running_broker(Limits(unauthenticated_connections=2, connect_seconds=CEILING_SECONDS)) as served,
        client(served, "lamp") as lamp,
    ):
        with RawMqttClient(served.port), RawMqttClient(served.port), RawMqttClient(served.port) as third:
            assert third.receive() is None
            assert lamp.settle() == []
        with client(served, "fan"):
            assert lamp.settle() == []
