"""Tools as models call them, and arguments as firmware accepts them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.devices.argument_validation import validate_arguments
from shared.devices.tool_catalogue import DeviceTool, aliases, parse_tool
from shared.rpc.errors import InvalidParams, ToolFailed

SCHEMA = {
    "type": "object",
    "properties": {
        "volume": {"type": "integer", "minimum": 0, "maximum": 100},
        "delay_seconds": {"type": "integer", "default": 0, "maximum": 86_400},
        "text": {"type": "string", "default": ""},
        "on": {"type": "boolean", "default": True},
    },
    "required": ["volume"],
}
TOOL = DeviceTool("self.x", "", SCHEMA)


def refused(**given: Any) -> list[str]:
    with pytest.raises(InvalidParams) as refusal:
        validate_arguments(TOOL, given)
    return sorted(problem["field"] for problem in refusal.value.details)


def test_valid_arguments_are_unchanged() -> None:
    given = {"volume": 50, "text": "đèn", "on": False, "unknown": [1]}
    assert validate_arguments(TOOL, given) == given
    assert validate_arguments(TOOL, {"volume": 50.0}) == {"volume": 50}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "arguments.volume"),
        ({"volume": 101}, "arguments.volume"),
        ({"volume": "50"}, "arguments.volume"),
        ({"volume": True}, "arguments.volume"),
        ({"volume": 50.9}, "arguments.volume"),
        ({"volume": None}, "arguments.volume"),
        # Values that firmware would silently replace, truncate or accept under another name.
        ({"volume": 1, "on": "yes"}, "arguments.on"),
        ({"volume": 1, "delay_seconds": -5_000_000_000}, "arguments.delay_seconds"),
        ({"volume": 1, "text": "a\0b"}, "arguments.text"),
        ({"volume": 1, "DELAY_SECONDS": 86_401}, "arguments.delay_seconds"),
        ({"VOLUME": 101}, "arguments.volume"),
        ({"volume": 1, "Volume": 2}, "arguments.volume"),
    ],
)
def test_invalid_arguments(given: dict[str, Any], field: str) -> None:
    assert refused(**given) == [field]


def test_argument_names_are_case_insensitive() -> None:
    assert validate_arguments(TOOL, {"Volume": 5}) == {"volume": 5}


def test_each_invalid_argument_is_named() -> None:
    assert refused(volume=101, text=7, on=1) == ["arguments.on", "arguments.text", "arguments.volume"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nope"},
        {"properties": 7},
        {"$ref": "http://127.0.0.1:9/x"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"properties": {"text": {"pattern": "("}}},
    ],
)
def test_invalid_schema_is_a_device_error(schema: dict[str, Any]) -> None:
    with pytest.raises(ToolFailed):
        validate_arguments(DeviceTool("self.x", "", schema), {"text": "x"})


def test_a_pattern_takes_linear_time() -> None:
    slow = DeviceTool("self.x", "", {"properties": {"text": {"pattern": "^(a+)+$"}}})
    with pytest.raises(InvalidParams):
        validate_arguments(slow, {"text": "a" * 5_000 + "!"})


names = st.lists(st.text(st.sampled_from("ab._- é/"), min_size=1, max_size=8), unique=True, max_size=20)


@given(names, st.randoms())
def test_tool_names_are_unique(given_names: list[str], shuffling: Any) -> None:
    unique = aliases(given_names)
    assert len(set(unique.values())) == len(given_names)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,39}", alias) for alias in unique.values())
    shuffled = list(given_names)
    shuffling.shuffle(shuffled)
    assert aliases(shuffled) == unique


def test_valid_tool_name_is_kept() -> None:
    names = aliases(["self.light.on", "self_light_on", "self.volume"])
    assert (names["self_light_on"], names["self.volume"]) == ("self_light_on", "self_volume")
    assert names["self.light.on"] != "self_light_on"
    assert len(set(aliases([f"{'x' * 100}{number}" for number in range(50)]).values())) == 50


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("đèn.bật", "den_bat"),
        ("灯.开", "u706f_u5f00"),
        ("лампа", "elaempea"),
        ("ランプ", "ranpu"),
        ("1starts_digit", "tool_1starts_digit"),
        ("-dash", "tool_dash"),
        ("self.light." + "x" * 60, "self_light_" + "x" * 29),
    ],
)
def test_tool_name_is_transliterated(name: str, alias: str) -> None:
    assert aliases([name]) == {name: alias}


@pytest.mark.parametrize("described", [None, 7, [], {}, {"name": ""}, {"name": 7}, {"name": "x" * 201}])
def test_invalid_tool_descriptions(described: Any) -> None:
    assert parse_tool(described) is None


def test_tool_description_is_the_devices_own() -> None:
    annotations = {"audience": ["user"]}
    described = {"name": "self.x", "description": "d", "inputSchema": SCHEMA, "annotations": annotations}
    assert parse_tool(described) == DeviceTool("self.x", "d", SCHEMA, annotations)
    assert parse_tool({"name": "self.x"}) == DeviceTool("self.x", "", {"type": "object"})
