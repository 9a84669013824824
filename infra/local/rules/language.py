"""The part of AWS IoT SQL that this project's rules use: fields, a few functions, conditions."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from shared.rpc.errors import KhoError
from shared.rpc.text import parse as parse_json

if TYPE_CHECKING:
    from collections.abc import Callable

UNDEFINED: Final = object()
"""What a name stands for that the message does not have."""

_TOKEN: Final = re.compile(r"\s*(?:('(?:[^']|'')*')|(-?\d+(?:\.\d+)?)|([A-Za-z_][\w.]*)|(<>|<=|>=|[=<>(),*]))")
_RESERVED: Final = frozenset({"select", "from", "where", "as", "and", "or", "not"})


class RuleNotUnderstood(Exception):
    """The rule's SQL is more than this machine knows."""


@dataclass(frozen=True)
class Incoming:
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


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: which messages, and what becomes of them."""

    topic_filter: str
    whole: bool
    columns: dict[str, Callable[[Incoming], Any]]
    condition: Callable[[Incoming], Any] | None

    def event(self, incoming: Incoming) -> dict[str, Any] | None:
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


def read(sql: str) -> Rule:
    """Understand a rule's SQL."""
    return _Parser(_tokens(sql)).rule()


def _tokens(sql: str) -> list[str]:
    tokens, position = [], 0
    while position < len(sql.rstrip()):
        found = _TOKEN.match(sql, position)
        if not found:
            raise RuleNotUnderstood(f"at '{sql[position : position + 20].strip()}'")
        tokens.append(found[0].strip())
        position = found.end()
    return tokens


@dataclass(slots=True)
class _Parser:
    tokens: list[str]
    position: int = 0
    columns: dict[str, Callable[[Incoming], Any]] = field(default_factory=dict)

    def rule(self) -> Rule:
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
            raise RuleNotUnderstood(f"at '{self._next}'")
        return Rule(topic_filter, whole, self.columns, condition)

    def _column(self) -> None:
        name = self._next.rpartition(".")[2]
        is_function = self.tokens[self.position + 1 : self.position + 2] == ["("]
        expression = self._value()
        if self._accept("as"):
            name = self._take()
        elif is_function:
            raise RuleNotUnderstood(f"{name}() needs a name: AS …")
        self.columns[name] = expression

    def _either(self) -> Callable[[Incoming], Any]:
        found = self._both()
        while self._accept("or"):
            found = _either(found, self._both())
        return found

    def _both(self) -> Callable[[Incoming], Any]:
        found = self._negated()
        while self._accept("and"):
            found = _both(found, self._negated())
        return found

    def _negated(self) -> Callable[[Incoming], Any]:
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

    def _value(self) -> Callable[[Incoming], Any]:
        token = self._take()
        if token.startswith("'"):
            said = token[1:-1].replace("''", "'")
            return lambda _: said
        if token[0].isdigit() or token[0] == "-":
            number = float(token) if "." in token else int(token)
            return lambda _: number
        if token.lower() in ("true", "false", "null"):
            constant = {"true": True, "false": False, "null": None}[token.lower()]
            return lambda _: constant
        if not token[0].isalpha() or token.lower() in _RESERVED:
            raise RuleNotUnderstood(f"at '{token}'")
        return self._function(token) if self._accept("(") else _path(token.split("."))

    def _function(self, name: str) -> Callable[[Incoming], Any]:
        made: Callable[[Incoming], Any]
        match name.lower():
            case "encode":
                of = None if self._accept("*") else self._value()
                self._expect(",")
                if self._string() != "base64":
                    raise RuleNotUnderstood("encode() is known for 'base64' alone")
                made = _encoded(of)
            case "topic" if self._next == ")":
                made = lambda incoming: incoming.topic  # noqa: E731 - a branch of many alike
            case "topic":
                made = _segment(int(self._take()))
            case "timestamp":
                made = lambda incoming: incoming.timestamp  # noqa: E731 - a branch of many alike
            case "clientid":
                made = lambda incoming: incoming.client_id  # noqa: E731 - a branch of many alike
            case "isundefined":
                of = self._value()
                made = _is(of, UNDEFINED)
            case "isnull":
                of = self._value()
                made = _is(of, None)
            case _:
                raise RuleNotUnderstood(f"{name}() is not known")
        self._expect(")")
        return made

    @property
    def _next(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._next
        if not token:
            raise RuleNotUnderstood("it ends too early")
        self.position += 1
        return token

    def _accept(self, word: str) -> bool:
        if self._next.lower() != word:
            return False
        self.position += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise RuleNotUnderstood(f"'{word}' is missing before '{self._next}'")

    def _string(self) -> str:
        token = self._take()
        if not token.startswith("'"):
            raise RuleNotUnderstood(f"at '{token}', where a text in quotes must stand")
        return token[1:-1]


def _path(names: list[str]) -> Callable[[Incoming], Any]:
    def found(incoming: Incoming) -> Any:
        value = incoming.document
        for name in names:
            value = value.get(name, UNDEFINED) if isinstance(value, dict) else UNDEFINED
        return value

    return found


def _segment(number: int) -> Callable[[Incoming], Any]:
    def found(incoming: Incoming) -> Any:
        levels = incoming.topic.split("/")
        return levels[number - 1] if 0 < number <= len(levels) else UNDEFINED

    return found


def _encoded(of: Callable[[Incoming], Any] | None) -> Callable[[Incoming], Any]:
    def found(incoming: Incoming) -> Any:
        value = incoming.payload if of is None else of(incoming)
        if value is UNDEFINED:
            return UNDEFINED
        return base64.b64encode(value if isinstance(value, bytes) else str(value).encode("utf-8")).decode("ascii")

    return found


def _is(of: Callable[[Incoming], Any], wanted: object) -> Callable[[Incoming], Any]:
    return lambda incoming: of(incoming) is wanted


def _compared(
    left: Callable[[Incoming], Any], right: Callable[[Incoming], Any], *, equal: bool
) -> Callable[[Incoming], Any]:
    def found(incoming: Incoming) -> Any:
        one, other = left(incoming), right(incoming)
        if one is UNDEFINED or other is UNDEFINED:
            return UNDEFINED
        same = one == other and isinstance(one, bool) == isinstance(other, bool)
        return same if equal else not same

    return found


def _both(one: Callable[[Incoming], Any], other: Callable[[Incoming], Any]) -> Callable[[Incoming], Any]:
    return lambda incoming: one(incoming) is True and other(incoming) is True


def _either(one: Callable[[Incoming], Any], other: Callable[[Incoming], Any]) -> Callable[[Incoming], Any]:
    return lambda incoming: one(incoming) is True or other(incoming) is True
