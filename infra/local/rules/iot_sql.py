"""The part of AWS IoT SQL that this project's rules use: fields, a few functions, conditions."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from shared.rpc.errors import KhoError
from shared.rpc.strict_json import parse as parse_json

UNDEFINED: Final = object()
"""What a name stands for that the message does not have."""
_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}

_TOKEN: Final = re.compile(r"\s*(?:('(?:[^']|'')*')|(-?\d+(?:\.\d+)?)|([A-Za-z_][\w.]*)|(<>|<=|>=|[=<>(),*]))")
_RESERVED: Final = frozenset({"select", "from", "where", "as", "and", "or", "not"})


class UnsupportedRule(Exception):
    """The rule's SQL is more than this machine knows."""


@dataclass(frozen=True)
class IncomingMessage:
    """A message as a rule sees it."""

    topic: str
    payload: bytes
    client_id: str
    timestamp: int

    @cached_property
    def document(self) -> Any:
        """The payload's JSON, undefined where it is none."""
        try:
            return parse_json(self.payload)
        except KhoError:
            return UNDEFINED


Expression = Callable[[IncomingMessage], Any]
"""What a part of a rule stands for, in a message."""


@dataclass(frozen=True, slots=True)
class IotRule:
    """One rule: which messages, and what becomes of them."""

    topic_filter: str
    whole: bool
    columns: dict[str, Expression]
    condition: Expression | None

    def event(self, incoming: IncomingMessage) -> dict[str, Any] | None:
        """What the function is sent, None where the message does not meet the rule."""
        if self.condition is not None and self.condition(incoming) is not True:
            return None
        event: dict[str, Any] = {}
        if self.whole:
            if not isinstance(incoming.document, dict):
                return None
            event.update(incoming.document)
        for name, column in self.columns.items():
            value = column(incoming)
            if value is not UNDEFINED:
                event[name] = value
        return event


def parse_rule(sql: str) -> IotRule:
    """Understand a rule's SQL."""
    return _Parser(_tokens(sql)).rule()


def _tokens(sql: str) -> list[str]:
    tokens, position = [], 0
    while position < len(sql.rstrip()):
        found = _TOKEN.match(sql, position)
        if not found:
            raise UnsupportedRule(f"at '{sql[position : position + 20].strip()}'")
        tokens.append(found[0].strip())
        position = found.end()
    return tokens


@dataclass(slots=True)
class _Parser:
    tokens: list[str]
    position: int = 0
    columns: dict[str, Expression] = field(default_factory=dict)

    def rule(self) -> IotRule:
        self._expect("select")
        whole = False
        while True:
            if self._accept("*"):
                whole = True
            else:
                self._column()
            if not self._accept(","):
                break
        self._expect("from")
        topic_filter = self._string()
        condition = self._either() if self._accept("where") else None
        if self.position != len(self.tokens):
            raise UnsupportedRule(f"at '{self._next}'")
        return IotRule(topic_filter, whole, self.columns, condition)

    def _column(self) -> None:
        name = self._next.rpartition(".")[2]
        is_function = self.tokens[self.position + 1 : self.position + 2] == ["("]
        expression = self._value()
        if self._accept("as"):
            name = self._take()
        elif is_function:
            raise UnsupportedRule(f"{name}() needs a name: AS …")
        self.columns[name] = expression

    def _either(self) -> Expression:
        found = self._both()
        while self._accept("or"):
            found = _either(found, self._both())
        return found

    def _both(self) -> Expression:
        found = self._negated()
        while self._accept("and"):
            found = _both(found, self._negated())
        return found

    def _negated(self) -> Expression:
        if self._accept("not"):
            inner = self._negated()
            return lambda incoming: UNDEFINED if (said := inner(incoming)) is UNDEFINED else not said
        if self._accept("("):
            found = self._either()
            self._expect(")")
            return found
        left = self._value()
        operator = self._next
        if operator not in ("=", "<>"):
            return left
        self.position += 1
        return _compared(left, self._value(), equal=operator == "=")

    def _value(self) -> Expression:
        token = self._take()
        if token.startswith("'"):
            return _constant(token[1:-1].replace("''", "'"))
        if token[0].isdigit() or token[0] == "-":
            return _constant(float(token) if "." in token else int(token))
        if token.lower() in _CONSTANTS:
            return _constant(_CONSTANTS[token.lower()])
        if not token[0].isalpha() or token.lower() in _RESERVED:
            raise UnsupportedRule(f"at '{token}'")
        return self._function(token) if self._accept("(") else _path(token.split("."))

    def _function(self, name: str) -> Expression:
        arguments = _FUNCTIONS.get(name.lower())
        if arguments is None:
            raise UnsupportedRule(f"{name}() is not known")
        made = arguments(self)
        self._expect(")")
        return made

    def encode(self) -> Expression:
        """encode(*, 'base64') or encode(field, 'base64')."""
        of = None if self._accept("*") else self._value()
        self._expect(",")
        if self._string() != "base64":
            raise UnsupportedRule("encode() is known for 'base64' alone")
        return _encoded(of)

    def topic(self) -> Expression:
        """topic() or topic(level)."""
        return _topic if self._next == ")" else _segment(int(self._take()))

    def is_undefined(self) -> Expression:
        """isUndefined(field)."""
        return _is(self._value(), UNDEFINED)

    def is_null(self) -> Expression:
        """isNull(field)."""
        return _is(self._value(), None)

    def starts_with(self) -> Expression:
        """startswith(field, 'text')."""
        of = self._value()
        self._expect(",")
        return _starts_with(of, self._value())

    @property
    def _next(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._next
        if not token:
            raise UnsupportedRule("it ends too early")
        self.position += 1
        return token

    def _accept(self, word: str) -> bool:
        if self._next.lower() != word:
            return False
        self.position += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise UnsupportedRule(f"'{word}' is missing before '{self._next}'")

    def _string(self) -> str:
        token = self._take()
        if not token.startswith("'"):
            raise UnsupportedRule(f"at '{token}', where a text in quotes must stand")
        return token[1:-1]


_FUNCTIONS: Final[dict[str, Callable[[_Parser], Expression]]] = {
    "encode": _Parser.encode,
    "topic": _Parser.topic,
    "timestamp": lambda _: lambda incoming: incoming.timestamp,
    "clientid": lambda _: lambda incoming: incoming.client_id,
    "isundefined": _Parser.is_undefined,
    "isnull": _Parser.is_null,
    "startswith": _Parser.starts_with,
}


def _constant(value: Any) -> Expression:
    return lambda _: value


def _topic(incoming: IncomingMessage) -> Any:
    return incoming.topic


def _path(names: list[str]) -> Expression:
    def found(incoming: IncomingMessage) -> Any:
        value = incoming.document
        for name in names:
            value = value.get(name, UNDEFINED) if isinstance(value, dict) else UNDEFINED
        return value

    return found


def _segment(number: int) -> Expression:
    def found(incoming: IncomingMessage) -> Any:
        levels = incoming.topic.split("/")
        return levels[number - 1] if 0 < number <= len(levels) else UNDEFINED

    return found


def _encoded(of: Expression | None) -> Expression:
    def found(incoming: IncomingMessage) -> Any:
        value = incoming.payload if of is None else of(incoming)
        if value is UNDEFINED:
            return UNDEFINED
        return base64.b64encode(value if isinstance(value, bytes) else str(value).encode("utf-8")).decode("ascii")

    return found


def _starts_with(of: Expression, beginning: Expression) -> Expression:
    def found(incoming: IncomingMessage) -> Any:
        whole, part = of(incoming), beginning(incoming)
        return whole.startswith(part) if isinstance(whole, str) and isinstance(part, str) else UNDEFINED

    return found


def _is(of: Expression, wanted: object) -> Expression:
    return lambda incoming: of(incoming) is wanted


def _compared(left: Expression, right: Expression, *, equal: bool) -> Expression:
    def found(incoming: IncomingMessage) -> Any:
        one, other = left(incoming), right(incoming)
        if one is UNDEFINED or other is UNDEFINED:
            return UNDEFINED
        same = one == other and isinstance(one, bool) == isinstance(other, bool)
        return same if equal else not same

    return found


def _both(one: Expression, other: Expression) -> Expression:
    return lambda incoming: one(incoming) is True and other(incoming) is True


def _either(one: Expression, other: Expression) -> Expression:
    return lambda incoming: one(incoming) is True or other(incoming) is True
