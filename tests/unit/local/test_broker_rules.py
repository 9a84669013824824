"""The broker's rules that need no network: message routing and authorization."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.iot.broker.authorization import ClientIdentity, FleetAccessRules
from infra.local.iot.broker.messages import BrokerMessage
from infra.local.iot.broker.subscriptions import Subscriptions
from infra.local.iot.mqtt.topics import matches
from shared.devices.ids import BACKEND_PREFIX
from tests.helpers.mqtt_client import admit_all, admit_none

if TYPE_CHECKING:
    from infra.local.iot.broker.subscriptions import Subscriber

levels = st.sampled_from(["a", "b", "+", "", "$c"])
filters = st.lists(levels, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from(["/".join(parts) or "a", "/".join([*parts, "#"])])
)
names = st.lists(st.sampled_from(["a", "b", "", "$c"]), min_size=1, max_size=4).map("/".join).filter(bool)


@given(
    st.lists(st.tuples(st.integers(0, 3), filters, st.booleans()), max_size=20),
    st.lists(names, max_size=5),
)
def test_topic_reaches_exactly_matching_subscribers(changes: list[tuple[int, str, bool]], topics: list[str]) -> None:
    people: list[Subscriber] = [list[BrokerMessage]().append for _ in range(4)]
    subscriptions, held = Subscriptions(), set[tuple[int, str]]()
    for who, topic_filter, away in changes:
        if away:
            subscriptions.remove(people[who], topic_filter)
            held.discard((who, topic_filter))
        else:
            subscriptions.add(people[who], topic_filter)
            held.add((who, topic_filter))
        for topic in topics:
            expected = {people[person] for person, topic_filter in held if matches(topic_filter, topic)}
            assert subscriptions.match(topic) == expected


def test_removed_filters_leave_nothing() -> None:
    subscriptions, subscriber = Subscriptions(), list[BrokerMessage]().append
    for topic_filter in ("a/1", "+/1/#"):
        subscriptions.add(subscriber, topic_filter)
        subscriptions.remove(subscriber, topic_filter)
    assert not subscriptions._exact
    assert not subscriptions._wildcards


access = FleetAccessRules("secret", admit_all)


def connects(rules: FleetAccessRules, client: ClientIdentity) -> bool:
    """Return the rules' decision without an event loop, which would need a socket."""
    with pytest.raises(StopIteration) as said:
        rules.connect(client).send(None)
    return bool(said.value.value)


@pytest.mark.parametrize("client_id", ["+", "#", "a/b", "a+", "$aws", "", f"{BACKEND_PREFIX}x"])
def test_device_ids_cannot_alias_topics(client_id: str) -> None:
    assert not connects(access, ClientIdentity(client_id))


def test_backend_authenticates_by_token() -> None:
    assert connects(access, ClientIdentity(f"{BACKEND_PREFIX}1", "kho", b"secret"))
    assert not connects(access, ClientIdentity(f"{BACKEND_PREFIX}1", "kho", b"secre"))
    assert not connects(access, ClientIdentity(f"{BACKEND_PREFIX}1"))
    assert connects(FleetAccessRules("secret", admit_none), ClientIdentity(f"{BACKEND_PREFIX}1", "kho", b"secret"))
    assert not connects(FleetAccessRules("secret", admit_none), ClientIdentity("lamp-1", "kho", b"secret"))


@given(st.text(min_size=1, max_size=20), st.text(max_size=30))
def test_device_is_limited_to_its_two_topics(client_id: str, other: str) -> None:
    client = ClientIdentity(client_id)
    if not connects(access, client):
        return
    assert access.publish(client, f"devices/{client_id}/up")
    assert access.subscribe(client, f"devices/{client_id}/down")
    assert access.receive(client, f"devices/{client_id}/down")
    for topic in (other, f"devices/{other}/up", f"devices/{other}/down", f"devices/{client_id}/down", "devices/+/down"):
        assert not access.publish(client, topic) or topic == f"devices/{client_id}/up"
        assert not access.subscribe(client, topic) or topic == f"devices/{client_id}/down"


def test_backend_may_use_device_and_presence_topics() -> None:
    backend = ClientIdentity(f"{BACKEND_PREFIX}1")
    assert access.publish(backend, "devices/lamp-1/down")
    assert access.subscribe(backend, "devices/+/up")
    assert access.subscribe(backend, "$aws/events/presence/#")
    assert not access.publish(backend, "$aws/events/presence/connected/lamp-1")
    assert not access.subscribe(backend, "#")
