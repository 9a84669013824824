"""The parts of a rule: a pattern, and a check of its matches."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Candidate:
    """A match of a pattern, which begins at `begin`; the possible secret spans `start` to `end`."""

    data: bytes
    begin: int
    start: int
    end: int

    @property
    def value(self) -> str:
        """The possible secret."""
        return self.data[self.start : self.end].decode("utf-8", "replace")

    @property
    def lead(self) -> str:
        """The part of the match before the value."""
        return self.data[self.begin : self.start].decode("utf-8", "replace")

    def before(self, length: int) -> str:
        """Return up to `length` bytes before the match on its line."""
        return self.preceding(length).rpartition("\n")[2]

    def preceding(self, length: int) -> str:
        """Return up to `length` bytes before the match, earlier lines included."""
        return self.data[max(0, self.begin - length) : self.begin].decode("utf-8", "ignore")

    def after(self, length: int) -> str:
        """Return up to `length` bytes after the value."""
        return self.data[self.end : self.end + length].decode("utf-8", "ignore")


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A kind of secret in plain words, with its pattern. The secret begins with the pattern's first group or its match.

    A pattern ends as early as possible; the secret continues over characters of the class `rest`. So patterns are
    small, and no part of a text is scanned repeatedly.
    """

    kind: str
    pattern: str
    accepts: Callable[[Candidate], bool]
    rest: str = ""

    def end(self, data: bytes, at: int) -> int:
        """Return the end of a secret whose pattern matched up to `at`."""
        match = _tail(self.rest).match(data, at) if self.rest else None
        return match.end() if match else at


@cache
def _tail(rest: str) -> re.Pattern[bytes]:
    return re.compile(f"{rest}{{0,120}}".encode())
