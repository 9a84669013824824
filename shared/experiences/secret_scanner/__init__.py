"""A scanner for secrets and personal data in a text.

Patterns run on RE2, so the time is linear in the length of the text. A prefilter tries each of the many patterns only
on texts with the literals that it requires. A rule then checks each match within a bounded distance, and drops
placeholders, addresses that identify no person, and version numbers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import re2  # type: ignore[import-untyped]  # the package has no types

from shared.experiences.secret_scanner.addresses import ADDRESSES
from shared.experiences.secret_scanner.commands import COMMANDS
from shared.experiences.secret_scanner.credentials import CREDENTIALS
from shared.experiences.secret_scanner.firmware import FIRMWARE
from shared.experiences.secret_scanner.national_numbers import NATIONAL_NUMBERS
from shared.experiences.secret_scanner.normalizations import normalized_views
from shared.experiences.secret_scanner.personal import PERSONAL
from shared.experiences.secret_scanner.private_keys import PRIVATE_KEYS
from shared.experiences.secret_scanner.prose import PROSE
from shared.experiences.secret_scanner.rules import Candidate
from shared.experiences.secret_scanner.seed_phrases import SEED_PHRASES
from shared.experiences.secret_scanner.vendors import VENDORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.experiences.secret_scanner.normalizations import TextView

_RULES = (
    *PRIVATE_KEYS,
    *VENDORS,
    *CREDENTIALS,
    *PROSE,
    *COMMANDS,
    *FIRMWARE,
    *SEED_PHRASES,
    *ADDRESSES,
    *NATIONAL_NUMBERS,
    *PERSONAL,
)


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """A secret or personal datum: its kind in plain words and its position, never its value."""

    kind: str
    start: int
    end: int


@dataclass(slots=True)
class _Findings:
    """Findings in the order of the text, of which no two overlap: the first one counts."""

    starts: list[int] = field(default_factory=list)
    ordered: list[SecretFinding] = field(default_factory=list)

    def add(self, finding: SecretFinding) -> None:
        place = bisect_right(self.starts, finding.start)
        overlaps_earlier = place > 0 and finding.start < self.ordered[place - 1].end
        if not overlaps_earlier and (place == len(self.starts) or finding.end <= self.starts[place]):
            self.starts.insert(place, finding.start)
            self.ordered.insert(place, finding)


def find_secrets(text: str) -> list[SecretFinding]:
    """Return all secrets and personal data in `text`, in order. Of overlapping findings the first one counts."""
    findings = _Findings()
    for view in normalized_views(text):
        _scan(view, findings)
    return findings.ordered


def _scan(view: TextView, findings: _Findings) -> None:
    data = view.text.encode("utf-8", "replace")
    character: Callable[[int], int] | None = None
    for number in _filter().Match(data, potential=True) or ():
        for start, end in _matches(number, data):
            character = character or _character_positions(data)
            findings.add(SecretFinding(_RULES[number].kind, view.origin(character(start)), view.origin(character(end))))


def _character_positions(data: bytes) -> Callable[[int], int]:
    """Return the function that gives the position in characters of a position in bytes."""
    if data.isascii():
        return lambda at: at
    begins = [at for at, byte in enumerate(data) if byte & 0xC0 != 0x80]
    return lambda at: bisect_left(begins, at)


def _matches(number: int, data: bytes) -> Iterator[tuple[int, int]]:
    rule, pattern, at = _RULES[number], _filter().re(number), 0
    groups = pattern.groups
    while match := pattern.search(data, at):
        start, end = match.span(1) if groups and match.start(1) >= 0 else match.span()
        end = rule.end(data, end)
        if rule.accepts(Candidate(data, match.start(), start, end)):
            yield start, end
            at = end
        else:
            at = max(start, at + 1) if groups else match.end()


@cache
def _filter() -> re2.Filter:
    """Compile all patterns once."""
    filter_ = re2.Filter()
    for rule in _RULES:
        filter_.Add(rule.pattern.encode())
    filter_.Compile()
    return filter_
