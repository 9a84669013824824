"""The subset of AWS IoT SQL that the template's rules use; any other SQL is rejected."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from shared.rpc.errors import KhoError
from shared.rpc.strict_json import parse

_UNDEFINED: Final = object()
"""The value of a field that the message does not have."""

_RULE: Final = re.compile(
    r"SELECT\s+(?P<columns>.+?)\s+FROM\s+'(?P<filter>[^']+)'(?:\s+WHERE\s+(?P<not>NOT\s+)?(?P<condition>.+))?",
    re.IGNORECASE | re.DOTALL,
)
_COMMA: Final = re.compile(r",(?![^(]*\))")
"""A comma outside of parentheses."""
_COLUMN: Final = re.compile(
    r"(?:(?P<encode>encode\(\*,\s*'base64'\))|(?P<timestamp>timestamp\(\))|topic\((?P<level>\d)\))\s+AS\s+(?P<name>\w+)",
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"isUndefined\((?P<undefined>[\w.]+)\)|startswith\((?P<text>[\w.]+),\s*'(?P<prefix>[^']*)'\)", re.IGNORECASE
)


class UnsupportedRule(Exception):
    """The rule uses SQL that the local server does not support."""


@dataclass(frozen=True)
class IncomingMessage:
    """A published message."""

    topic: str
    payload: bytes
    timestamp: int
    sequence: int = 0
    """The number of messages that the broker received before it in the same millisecond."""

    @cached_property
    def document(self) -> Any:
        """The parsed payload, undefined if it is not JSON."""
        try:
            return parse(self.payload)
        except KhoError:
            return _UNDEFINED

    def field(self, path: str) -> Any:
        """Return the value at a dotted path, undefined if the message does not have it."""
        value = self.document
        for name in path.split("."):
            value = value.get(name, _UNDEFINED) if isinstance(value, dict) else _UNDEFINED
        return value


Column = Callable[[IncomingMessage], Any]
Condition = Callable[[IncomingMessage], bool]


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """A parsed rule."""

    topic_filter: str
    selects_all: bool
    columns: dict[str, Column]
    condition: Condition | None
    selects_timestamp: bool = False

    def event(self, message: IncomingMessage) -> dict[str, Any] | None:
        """Return the event for the rule's function, or None if the message does not match."""
        if self.condition and not self.condition(message):
            return None
        if self.selects_all and not isinstance(message.document, dict):
            return None
        fields = message.document if self.selects_all else {}
        if self.selects_timestamp:
            # Functions run in any order. IoT Core tells them the millisecond alone.
            fields = fields | {"sequence": message.sequence}
        return fields | {name: column(message) for name, column in self.columns.items()}


def parse_rule(sql: str) -> ParsedRule:
    """Parse a rule's SQL."""
    rule = _RULE.fullmatch(sql.strip())
    if rule is None:
        raise UnsupportedRule(f"not supported: '{sql}'")
    columns = [column.strip() for column in _COMMA.split(rule["columns"])]
    return ParsedRule(
        topic_filter=rule["filter"],
        selects_all="*" in columns,
        columns=dict(_parse_column(column, rule["filter"]) for column in columns if column != "*"),
        condition=_parse_condition(rule["condition"], negated=bool(rule["not"])) if rule["condition"] else None,
        selects_timestamp=any(column.lower().startswith("timestamp()") for column in columns),
    )


def _parse_column(text: str, topic_filter: str) -> tuple[str, Column]:
    column = _COLUMN.fullmatch(text)
    if column is None:
        raise UnsupportedRule(f"not supported as a column: '{text}'")
    if column["encode"]:
        return column["name"], lambda message: base64.b64encode(message.payload).decode("ascii")
    if column["timestamp"]:
        return column["name"], lambda message: message.timestamp
    level = int(column["level"])
    if not 0 < level <= len(topic_filter.split("/")):
        raise UnsupportedRule(f"the topic has no level {level}: '{topic_filter}'")
    return column["name"], lambda message: message.topic.split("/")[level - 1]


def _parse_condition(text: str, *, negated: bool) -> Condition:
    condition = _CONDITION.fullmatch(text)
    if condition is None:
        raise UnsupportedRule(f"not supported as a condition: '{text}'")
    if condition["undefined"]:
        return lambda message: (message.field(condition["undefined"]) is _UNDEFINED) is not negated

    def starts_with(message: IncomingMessage) -> bool:
        value = message.field(condition["text"])
        # As in IoT SQL, a value that is not text meets neither the condition nor its negation.
        return isinstance(value, str) and value.startswith(condition["prefix"]) is not negated

    return starts_with
