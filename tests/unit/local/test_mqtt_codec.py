"""MQTT encoding: every packet round-trips, and no input does harm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.local.iot.mqtt.decoding import decode
from infra.local.iot.mqtt.encoding import encode
from infra.local.iot.mqtt.framing import Framer
from infra.local.iot.mqtt.packets import (
    MQTT_3,
    MQTT_5,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
)
from infra.local.iot.mqtt.properties import Properties
from infra.local.iot.mqtt.reason_codes import MalformedPacket, ReasonCode
from infra.local.iot.mqtt.topics import is_filter, is_topic, matches

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
topics = st.text(st.sampled_from("ab/đ"), min_size=1, max_size=8)
filters = st.lists(st.sampled_from(["a", "bc", "", "+", "đ"]), min_size=1, max_size=4).flatmap(
    lambda levels: st.sampled_from(["/".join(levels) or "a", "/".join([*levels, "#"])])
)
payloads = st.binary(max_size=300)
numbers = st.integers(1, 65_535)
pairs = st.lists(st.tuples(texts, texts), max_size=3)


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def given_properties(**about: st.SearchStrategy[Any]) -> st.SearchStrategy[Properties | None]:
    """Generate properties as decoded: None if there are none."""
    generated = st.builds(Properties, user_properties=pairs, **{name: some(each) for name, each in about.items()})
    return generated.map(lambda properties: properties if properties != Properties() else None)


four = st.integers(0, 2**32 - 1)
about_message = {
    "payload_format": st.booleans(),
    "message_expiry": four,
    "content_type": texts,
    "response_topic": topics,
    "correlation_data": payloads,
}
wills = st.builds(
    Will, topics, payloads, st.integers(0, 2), st.booleans(), given_properties(**about_message, will_delay=four)
)
reasons = st.sampled_from([int(reason) for reason in ReasonCode])


@st.composite
def connects(draw: st.DrawFn) -> Connect:
    """Generate a CONNECT of either level. In MQTT 3.1.1 a password needs a user name."""
    level = draw(st.sampled_from([MQTT_3, MQTT_5]))
    properties = given_properties(
        session_expiry=four, receive_maximum=numbers, maximum_packet_size=st.integers(1, 2**32 - 1)
    )
    user = draw(some(texts))
    password = draw(some(payloads)) if user is not None or level == MQTT_5 else None
    packet = Connect(draw(texts), level, draw(st.booleans()), draw(st.integers(0, 65_535)), draw(some(wills)))
    packet.user_name, packet.password, packet.properties = user, password, draw(properties)
    return packet


packets = st.one_of(
    connects(),
    st.builds(
        Connack,
        reasons,
        given_properties(server_keepalive=numbers, assigned_client_id=texts, maximum_qos=st.booleans()),
    ),
    st.builds(Publish, topics, payloads, st.just(0), st.booleans(), properties=given_properties(**about_message)),
    st.builds(Publish, topics, payloads, st.integers(1, 2), st.booleans(), numbers, given_properties(**about_message)),
    st.builds(Puback, numbers, reasons),
    st.builds(
        Subscribe,
        numbers,
        st.lists(st.tuples(filters, st.integers(0, 2)), min_size=1, max_size=4),
        given_properties(subscription_identifier=st.integers(1, 268_435_455)),
    ),
    st.builds(Suback, numbers, st.lists(reasons, min_size=1, max_size=4)),
    st.builds(Unsubscribe, numbers, st.lists(filters, min_size=1, max_size=4)),
    st.builds(Unsuback, numbers, st.lists(reasons, min_size=1, max_size=4)),
    st.builds(Disconnect, reasons),
    st.just(Pingreq()),
    st.just(Pingresp()),
)


def refusal_of(header: int, body: bytes, level: int) -> ReasonCode | None:
    """Return the reason why these bytes are not a valid packet, None if they are."""
    try:
        decode(header, body, level)
    except MalformedPacket as error:
        return error.reason
    return None


def only(data: bytes) -> tuple[int, bytes]:
    """Return the one packet in these bytes."""
    (frame,) = Framer(1_000_000).feed(data)
    return frame


def as_mqtt_3(packet: Packet) -> Packet:
    """Return the part of a packet that MQTT 3.1.1 can express."""
    if isinstance(packet, Connect):
        packet.level = MQTT_3
        if packet.user_name is None:
            packet.password = None
        if packet.will:
            packet.will.properties = None
    if isinstance(packet, Puback | Disconnect):
        packet.reason = 0
    if isinstance(packet, Connect | Connack | Publish | Subscribe):
        packet.properties = None
    return packet


@given(packets)
def test_packet_round_trip(packet: Packet) -> None:
    if isinstance(packet, Connect):
        packet.level = MQTT_5
    assert decode(*only(encode(packet, MQTT_5)), MQTT_5) == packet
    packet = as_mqtt_3(packet)
    assert decode(*only(encode(packet, MQTT_3)), MQTT_3) == packet


@pytest.mark.parametrize(
    ("header", "body", "packet"),
    [
        (0x40, b"\0\1\x10\4\x1f\0\1a", Puback(1, 0x10)),
        (0x82, b"\0\1\5\x26\0\0\0\0\0\1a\x2d", Subscribe(1, [("a", 1)], Properties(user_properties=[("", "")]))),
        (0xA2, b"\0\1\5\x26\0\0\0\0\0\1a", Unsubscribe(1, ["a"])),
        (0xE0, b"\4\5\x11\0\0\0\1", Disconnect(4)),
        (0x3A, b"\0\1a\0\1\0x", Publish("a", b"x", 1, packet_id=1)),
        (0x20, b"\1\0\0", Connack()),
    ],
)
def test_options_without_effect_are_accepted(header: int, body: bytes, packet: Packet) -> None:
    """Clients may send properties, duplicates and subscription options of MQTT 5 that change nothing here."""
    assert decode(header, body, MQTT_5) == packet


@given(st.lists(packets, max_size=4), st.lists(st.integers(1, 40), max_size=30))
def test_framer_handles_any_fragmentation(sent: list[Packet], sizes: list[int]) -> None:
    data = b"".join(encode(packet, MQTT_5) for packet in sent)
    framer = Framer(1_000_000)
    frames: list[tuple[int, bytes]] = []
    for size in [*sizes, len(data) + 1]:
        frames += framer.feed(data[:size])
        data = data[size:]
    assert frames == [only(encode(packet, MQTT_5)) for packet in sent]


@settings(max_examples=500)
@given(st.integers(0, 255), st.binary(max_size=80), st.sampled_from([MQTT_3, MQTT_5]))
def test_random_bytes_raise_only_malformed_packet(header: int, body: bytes, level: int) -> None:
    reason = refusal_of(header, body, level)
    if reason is None:
        packet = decode(header, body, level)
        again = packet.level if isinstance(packet, Connect) else level
        assert decode(*only(encode(packet, again)), again) == packet
    else:
        assert reason >= ReasonCode.MALFORMED_PACKET


@given(packets, st.data())
def test_corrupted_packet_is_rejected_or_valid(packet: Packet, data: st.DataObject) -> None:
    header, body = only(encode(packet, MQTT_5))
    place = data.draw(st.integers(0, max(0, len(body) - 1)))
    spoiled = data.draw(
        st.sampled_from([body[:place], body[:place] + b"\xff" + body[place + 1 :], body[:place] + b"\0" + body[place:]])
    )
    reason = refusal_of(header, spoiled, MQTT_5)
    assert reason is None or reason >= ReasonCode.MALFORMED_PACKET


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x30\xff\xff\xff\x7f", ReasonCode.PACKET_TOO_LARGE),
        (b"\x30\xff\xff\xff\xff\x01", ReasonCode.PACKET_TOO_LARGE),
        (b"\xc0\x80\x00", ReasonCode.MALFORMED_PACKET),
        (b"\xc0\x80\x80\x80\x80", ReasonCode.MALFORMED_PACKET),
    ],
)
def test_invalid_length_is_rejected_immediately(data: bytes, reason: ReasonCode) -> None:
    with pytest.raises(MalformedPacket) as refused:
        list(Framer(150_000).feed(data))
    assert refused.value.reason is reason


@pytest.mark.parametrize(
    ("header", "body", "level", "reason"),
    [
        (0x10, b"\0\4MQTT\3\2\0\0\0\1a", MQTT_3, ReasonCode.UNSUPPORTED_PROTOCOL_VERSION),
        (0x10, b"\0\4MQTT\4\3\0\0\0\1a", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x10, b"\0\4MQTT\4\x42\0\0\0\1a\0\1p", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x10, b"\0\4MQTT\4\2\0\0\0\1ab", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x30, b"\0\1#x", MQTT_3, ReasonCode.TOPIC_NAME_INVALID),
        (0x30, b"\0\0x", MQTT_3, ReasonCode.TOPIC_NAME_INVALID),
        (0x30, b"\0\3\xed\xa0\x80x", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x30, b"\0\1\0x", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x36, b"\0\1a\0\1x", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x30, b"\0\1a\3\x23\0\1", MQTT_5, ReasonCode.TOPIC_ALIAS_INVALID),
        (0x30, b"\0\0\3\x23\0\1", MQTT_5, ReasonCode.TOPIC_ALIAS_INVALID),
        (0x38, b"\0\1ax", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x32, b"\0\1a\0\0x", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x30, b"\0\1a\4\x23\0\1\x26", MQTT_5, ReasonCode.MALFORMED_PACKET),
        (0x30, b"\0\1a\4\1\0\1\0", MQTT_5, ReasonCode.PROTOCOL_ERROR),
        (0x30, b"\0\1a\2\1\2", MQTT_5, ReasonCode.PROTOCOL_ERROR),
        (0x30, b"\0\1a\5\x11\0\0\0\1", MQTT_5, ReasonCode.PROTOCOL_ERROR),
        (0x30, b"\0\1a\4\x08\0\1+", MQTT_5, ReasonCode.PROTOCOL_ERROR),
        (0x80, b"\0\1\0\1a\0", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x82, b"\0\1", MQTT_3, ReasonCode.PROTOCOL_ERROR),
        (0x82, b"\0\1\0\2a#\0", MQTT_3, ReasonCode.TOPIC_FILTER_INVALID),
        (0x82, b"\0\1\0\1a\3", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0x82, b"\0\1\0\1a\4", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0xA2, b"\0\1", MQTT_3, ReasonCode.PROTOCOL_ERROR),
        (0x50, b"\0\1", MQTT_3, ReasonCode.PROTOCOL_ERROR),
        (0xF0, b"", MQTT_5, ReasonCode.PROTOCOL_ERROR),
        (0xC1, b"", MQTT_3, ReasonCode.MALFORMED_PACKET),
        (0xC0, b"x", MQTT_3, ReasonCode.MALFORMED_PACKET),
    ],
)
def test_protocol_violations_have_reason_codes(header: int, body: bytes, level: int, reason: ReasonCode) -> None:
    with pytest.raises(MalformedPacket) as refused:
        decode(header, body, level)
    assert refused.value.reason is reason


@pytest.mark.parametrize(
    ("topic_filter", "topic", "matched"),
    [
        ("a/b", "a/b", True),
        ("a/+", "a/b", True),
        ("a/+", "a/b/c", False),
        ("a/+", "a/", True),
        ("+", "/a", False),
        ("+/+", "/a", True),
        ("a/#", "a/b/c", True),
        ("a/#", "a/", True),
        ("a/#", "a", False),
        ("#", "a/b", True),
        ("#", "$aws/x", False),
        ("+/x", "$aws/x", False),
        ("$aws/#", "$aws/x", True),
        ("devices/+/up", "devices/1/up", True),
    ],
)
def test_filters_match_like_iot_core(topic_filter: str, topic: str, *, matched: bool) -> None:
    assert matches(topic_filter, topic) is matched


@pytest.mark.parametrize("bad", ["", "a#", "#/a", "a+", "a/+b", "a/#/b", "a\0"])
def test_wildcard_occupies_a_whole_level(bad: str) -> None:
    assert not is_filter(bad)
    assert not is_topic(bad) or bad == "a"
