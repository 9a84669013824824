"""Messages about invalid fields are for callers: no regular expressions, no class names, no terms of Python."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pytest
from pydantic import Field

from endpoints.actions import ActionEnvelope
from infra.deploy.generate import _all_handlers
from shared.rpc.errors import InvalidParams
from shared.rpc.field_messages import PATTERNS
from shared.rpc.method import Params, read

MODELS = {handler.method.name: handler.method.params for handler in _all_handlers().values()}
WRONG: list[Any] = ["", " ", "a b\n", "x" * 300, 0, -1, 10**12, 1.5, True, None, [], [1], [None], ["\n"], {}, {"a": 1}]
INTERNALS = re.compile(r"[\\^\]$]|\binstance\b|dictionary|valid list|[Pp]ydantic|\b[A-Z][a-z]+[A-Z]\w+|Params")


def messages(model: type[Params], body: Any) -> list[str]:
    try:
        read(model, body)
    except InvalidParams as error:
        return [f"{each['field']}: {each['message']}" for each in error.details]
    return []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"text": ""}, "text: should have at least 1 character"),
        ({"text": "abc"}, "text: should have at most 2 characters"),
        ({"items": []}, "items: should have at least 1 item"),
        ({"items": [1, 2, 3]}, "items: should have at most 2 items"),
    ],
)
def test_lengths_are_in_words(value: dict[str, Any], message: str) -> None:
    class Lengths(Params):
        text: Annotated[str, Field(min_length=1, max_length=2)] = "x"
        items: Annotated[list[int], Field(default_factory=list, min_length=1, max_length=2)]

    assert messages(Lengths, value) == [message]


@pytest.mark.parametrize("method", [*sorted(MODELS), "actions"])
def test_messages_are_in_words(method: str) -> None:
    model: type[Params] = MODELS.get(method, ActionEnvelope)
    schema = model.model_json_schema()
    inner = {name: list(each.get("properties", {})) for name, each in schema.get("$defs", {}).items()}
    names = list(schema["properties"])
    bodies = [{name: wrong} for name in names for wrong in WRONG]
    bodies += [
        {name: {field: wrong}} for name in names for fields in inner.values() for field in fields for wrong in WRONG
    ]
    said = {message for body in bodies for message in messages(model, body)}
    said = {message for message in said if not message.endswith("is not a field of this method")}
    assert [message for message in said if INTERNALS.search(message)] == []


@pytest.mark.parametrize(
    ("method", "body", "message"),
    [
        ("agent-data/get_document", {"document_id": "a b"}, "document_id: should be letters, digits and . _ - :"),
        ("memory-server/memory/clear", {"conversation_id": "a b"}, "without spaces and control characters"),
        ("actions", {"action": "x", "payload": {}, "principal": 1}, "principal: should be a JSON object"),
        ("agent-data/query_knowledge", {"query": "x", "filters": {"tags": 1}}, "filters.tags: should be an array"),
    ],
)
def test_messages_say_what_is_needed(method: str, body: dict[str, Any], message: str) -> None:
    assert message in messages(MODELS.get(method, ActionEnvelope), body)[0]


def test_every_pattern_has_words() -> None:
    """The reference, too, describes each pattern in words."""

    def patterns(node: Any) -> set[str]:
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        found = {node["pattern"]} if isinstance(node, dict) and isinstance(node.get("pattern"), str) else set()
        return found.union(*map(patterns, inner))

    assert set().union(*(patterns(model.model_json_schema()) for model in MODELS.values())) <= PATTERNS.keys()
