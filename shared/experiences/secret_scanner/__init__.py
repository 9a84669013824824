"""What must not be shared: secrets and personal data in a text.

Patterns run on RE2, so that no text takes more than time in proportion to its length. They are many, and each is tried
only where the letters that it cannot do without occur. What a pattern finds is then looked at: a placeholder, an
address of the documentation or a version number is nothing to hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import re2  # type: ignore[import-untyped]

from shared.experiences.secret_scanner.credentials import CREDENTIALS
from shared.experiences.secret_scanner.normalizations import normalized_views
from shared.experiences.secret_scanner.personal import PERSONAL
from shared.experiences.secret_scanner.rules import Candidate
from shared.experiences.secret_scanner.vendors import VENDORS
from shared.experiences.secret_scanner.wallets import WALLETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.experiences.secret_scanner.normalizations import TextView

_RULES = (*VENDORS, *CREDENTIALS, *WALLETS, *PERSONAL)


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """One thing that must not be shared: what it is, in human words, and where it stands; never what it says."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> list[SecretFinding]:
    """Everything in `text` that is secret or personal, in order, where it is first known for what it is."""
    found: list[SecretFinding] = []
    for view in normalized_views(text):
        found += (each for each in _found(view) if not any(_overlap(each, known) for known in found))
    return sorted(found, key=lambda each: each.start)


def _found(view: TextView) -> list[SecretFinding]:
    data = view.text.encode("utf-8", "replace")
    found: list[SecretFinding] = []
    for number in _filter().Match(data, potential=True) or ():
        rule = _RULES[number]
        for start, end in _matches(number, data):
            each = SecretFinding(
                rule.kind, *(view.origin(len(data[:at].decode("utf-8", "replace"))) for at in (start, end))
            )
            if not any(_overlap(each, known) for known in found):
                found.append(each)
    return found


def _matches(number: int, data: bytes) -> Iterator[tuple[int, int]]:
    rule, pattern, at = _RULES[number], _filter().re(number), 0
    groups = pattern.groups
    while match := pattern.search(data, at):
        start, end = match.span(1) if groups else match.span()
        end = rule.end(data, end)
        if rule.accepts(Candidate(data, match.start(), start, end)):
            yield start, end
            at = end
        else:
            at = max(start, at + 1) if groups else match.end()


def _overlap(one: SecretFinding, other: SecretFinding) -> bool:
    return one.start < other.end and other.start < one.end


@cache
def _filter() -> re2.Filter:
    """Every pattern, compiled at the first use."""
    made = re2.Filter()
    for rule in _RULES:
        made.Add(rule.pattern.encode())
    made.Compile()
    return made
