"""What must not be shared is refused, and what has nothing to hide is not."""

from __future__ import annotations

import string
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.experiences.secrets import findings
from tests.labelled.code import CODE
from tests.labelled.credentials import CREDENTIALS
from tests.labelled.drawing import card, drawn, jwt, pem
from tests.labelled.keys import KEYS
from tests.labelled.personal import DISGUISED, PERSONAL
from tests.labelled.safe import PLACEHOLDERS, PROSE, TECHNICAL

SECRETS = [*KEYS, *CREDENTIALS, *PERSONAL, *DISGUISED]
SAFE = [*PLACEHOLDERS, *TECHNICAL, *CODE, *PROSE]

KNOWN = {
    "AWS access key": "AKIA" + drawn(16, string.ascii_uppercase),
    "GitHub token": "ghp_" + drawn(36),
    "Stripe key": "sk_live_" + drawn(24),
    "SendGrid API key": f"SG.{drawn(22)}.{drawn(43)}",
    "JSON web token": jwt(),
    "private key": pem("RSA PRIVATE KEY"),
    "e-mail address": "lan.nguyen@gmail.com",
    "IP address": "54.23.11.9",
    "payment card": card("4", 16),
    "phone number": "+84 912 345 678",
    "home folder": "/home/nguyenvana/app",
    "bank account number": "GB82 WEST 1234 5698 7654 32",
    "social security number": "SSN 536-22-1234",
    "wallet's seed phrase": "seed phrase: ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic",
    "password in a URL": "postgres://app:Jk82mnsd@db.acme.dev/app",
}
SURROUNDINGS = st.lists(st.sampled_from([*PROSE, *CODE]), max_size=8).map("\n".join)
JOINTS = st.sampled_from([" ", "\n", "\t", '"', "'", "`", "(", "，", "：", "\u3000", "<code>", " = "])


def test_the_sets_are_large_enough_to_tell() -> None:
    assert len(SECRETS) >= 120
    assert len(SAFE) >= 120
    assert len(set(SECRETS)) == len(SECRETS)
    assert len(set(SAFE)) == len(SAFE)


def test_every_secret_is_found() -> None:
    assert [text for text in SECRETS if not findings(text)] == []


def test_what_has_nothing_to_hide_is_let_through() -> None:
    alarms = {text: [each.kind for each in findings(text)] for text in SAFE if findings(text)}
    assert len(alarms) <= len(SAFE) * 0.02, alarms


@pytest.mark.parametrize(
    "text",
    [
        "https://user@github.com/acme/repo",
        "ssh://bob@build.acme.dev",
        "git@github.com:acme/repo.git",
        "fe80::1%lo0",
        "febf::a00:27ff:fe4e:66a1",
        "169.254.10.3",
        "checksum DE89370400440532013001",
        "SSN: 000-12-3456",
        "mnemonic: abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
        "the password's SHA-256",
    ],
)
def test_what_only_looks_like_it_is_let_through(text: str) -> None:
    assert findings(text) == []


@pytest.mark.parametrize("kind", KNOWN)
def test_a_secret_is_called_what_it_is(kind: str) -> None:
    (found,) = findings(KNOWN[kind])
    assert found.kind == kind


@given(SURROUNDINGS, JOINTS, st.sampled_from(sorted(KNOWN)), JOINTS, SURROUNDINGS)
@example("", " ", "phone number", " ", "tokens = tokenizer.encode(text)")
@settings(max_examples=200)
def test_a_secret_is_found_wherever_it_stands(before: str, open_: str, kind: str, close: str, after: str) -> None:
    text = f"{before}{open_}{KNOWN[kind]}{close}{after}"
    start = len(before) + len(open_)
    assert any(each.start < start + len(KNOWN[kind]) and start < each.end for each in findings(text))


@given(st.sampled_from(SECRETS))
def test_a_finding_says_where_and_never_what(text: str) -> None:
    for found in findings(text):
        assert 0 <= found.start < found.end <= len(text)
        assert text[found.start : found.end] not in str(found)


@given(st.text(max_size=400) | st.lists(st.sampled_from(SECRETS), max_size=5).map("".join))
def test_any_text_can_be_looked_at(text: str) -> None:
    found = findings(text)
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize(
    "unit",
    [
        "password=",
        "password's ",
        "sk-a-",
        "a@a.",
        "mnemonic ",
        "seed phrase is ",
        "4111 1111 ",
        "token ",
        "http://a:",
        "1.",
        "%41",
        "''",
        "A",
    ],
)
def test_no_text_holds_the_search_up_by_what_it_repeats(unit: str) -> None:
    """A pattern that reads a stretch again for each of its starts would take minutes here, not moments."""
    findings(unit * (50_000 // len(unit)))
