"""What a rule is: a pattern, and what else must hold of what it finds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a pattern found in a text: the match begins at `begin`, what may be secret goes from `start` to `end`."""

    data: bytes
    begin: int
    start: int
    end: int

    @property
    def value(self) -> str:
        """What may be secret."""
        return self.data[self.start : self.end].decode("utf-8", "replace")

    @property
    def lead(self) -> str:
        """What was matched before the value."""
        return self.data[self.begin : self.start].decode("utf-8", "replace")

    def before(self, length: int) -> str:
        """What stands before the match, on its line."""
        return self.data[max(0, self.begin - length) : self.begin].decode("utf-8", "ignore").rpartition("\n")[2]

    def after(self, length: int) -> str:
        """What follows the value."""
        return self.data[self.end : self.end + length].decode("utf-8", "ignore")


@dataclass(frozen=True, slots=True)
class SecretRule:
    """A kind of secret, in human words; the first group of `pattern`, else its whole match, is where the secret begins.

    A pattern ends as soon as it can, and the secret goes on over characters of the class `rest`: so patterns are small,
    and no text has the same stretch read again and again.
    """

    kind: str
    pattern: str
    accepts: Callable[[Candidate], bool]
    rest: str = ""

    def end(self, data: bytes, at: int) -> int:
        """Where a secret ends that was matched as far as `at`."""
        match = _tail(self.rest).match(data, at) if self.rest else None
        return match.end() if match else at


@cache
def _tail(rest: str) -> re.Pattern[bytes]:
    return re.compile(f"{rest}{{0,120}}".encode())
