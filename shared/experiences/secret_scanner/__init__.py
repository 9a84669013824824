"""A scanner for secrets and personal data in a text.

Patterns run on RE2, so the time is linear in the length of the text. A prefilter tries each of the many patterns only
on texts with the literals that it requires. A rule then checks each match, and drops placeholders, documentation
addresses and version numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import re2  # type: ignore[import-untyped]  # the package has no types

from shared.experiences.secret_scanner.credentials import CREDENTIALS
from shared.experiences.secret_scanner.normalizations import normalized_views
from shared.experiences.secret_scanner.personal import PERSONAL
from shared.experiences.secret_scanner.rules import Candidate
from shared.experiences.secret_scanner.vendors import VENDORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.experiences.secret_scanner.normalizations import TextView

_RULES = (*VENDORS, *CREDENTIALS, *PERSONAL)


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """A secret or personal datum: its kind in plain words and its position, never its value."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> list[SecretFinding]:
    """Return all secrets and personal data in `text`, in order. Of overlapping findings the first one counts."""
    findings: list[SecretFinding] = []
    for view in normalized_views(text):
        findings += (new for new in _scan(view) if not any(_overlap(new, known) for known in findings))
    return sorted(findings, key=lambda finding: finding.start)


def _scan(view: TextView) -> list[SecretFinding]:
    data = view.text.encode("utf-8", "replace")
    findings: list[SecretFinding] = []
    for number in _filter().Match(data, potential=True) or ():
        rule = _RULES[number]
        for start, end in _matches(number, data):
            finding = SecretFinding(
                rule.kind, *(view.origin(len(data[:at].decode("utf-8", "replace"))) for at in (start, end))
            )
            if not any(_overlap(finding, known) for known in findings):
                findings.append(finding)
    return findings


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
    """Compile all patterns once."""
    filter_ = re2.Filter()
    for rule in _RULES:
        filter_.Add(rule.pattern.encode())
    filter_.Compile()
    return filter_
