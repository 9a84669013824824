"""Texts with secrets are rejected, and texts without are not."""

from __future__ import annotations

import string
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shared.experiences.secret_scanner import find_secrets
from tests.data.secret_corpus.code import CODE
from tests.data.secret_corpus.credentials import CREDENTIALS
from tests.data.secret_corpus.drawing import card, citizen_number, jwt, pem, random_text
from tests.data.secret_corpus.firmware import FIRMWARE, FIRMWARE_SAFE
from tests.data.secret_corpus.keys import KEYS
from tests.data.secret_corpus.mixed import MIXED_SAFE, MIXED_UNSAFE
from tests.data.secret_corpus.neighbours import NEIGHBOURS_SAFE, NEIGHBOURS_UNSAFE
from tests.data.secret_corpus.personal import DISGUISED, PERSONAL
from tests.data.secret_corpus.safe import ANONYMOUS, KEPT_ELSEWHERE, PLACEHOLDERS, PROSE, TECHNICAL
from tests.helpers.size import sized

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = sized(4_096, full=65_536)
SECRETS = [
    *KEYS,
    *CREDENTIALS,
    *FIRMWARE,
    *PERSONAL,
    *DISGUISED,
    *(text for _, text in [*MIXED_UNSAFE, *NEIGHBOURS_UNSAFE]),
]
SAFE = [
    *PLACEHOLDERS,
    *TECHNICAL,
    *CODE,
    *PROSE,
    *ANONYMOUS,
    *KEPT_ELSEWHERE,
    *FIRMWARE_SAFE,
    *(text for _, text in [*MIXED_SAFE, *NEIGHBOURS_SAFE]),
]

KNOWN = {
    "AWS access key": "AKIA" + random_text(16, string.ascii_uppercase),
    "GitHub token": "ghp_" + random_text(36),
    "Stripe key": "sk_live_" + random_text(24),
    "SendGrid API key": f"SG.{random_text(22)}.{random_text(43)}",
    "JSON web token": jwt(),
    "private key": pem("RSA PRIVATE KEY"),
    "e-mail address": "lan.nguyen@gmail.com",
    "IP address": "http://54.23.11.9/",  # alone, four numbers may be a version next to some words
    "payment card": card("4", 16),
    "phone number": "+84 912 345 678",
    "home folder": "/home/nguyenvana/app",
    "bank account number": "GB82 WEST 1234 5698 7654 32",
    "social security number": "SSN 536-22-1234",
    "identity number": f"CCCD {citizen_number('079')}",
    "wallet's seed phrase": "seed phrase: ozone drill grab fiber curtain grace pudding thank cruise elder eight picnic",
    "password in a URL": "postgres://app:Jk82mnsd@db.acme.dev/app",
}
SURROUNDINGS = st.lists(st.sampled_from([*PROSE, *CODE]), max_size=8).map("\n".join)
JOINTS = st.sampled_from([" ", "\n", "\t", '"', "'", "`", "(", "，", "：", "\u3000", "<code>", " = "])


def test_corpus_is_large_enough() -> None:
    assert len(SECRETS) >= 120
    assert len(SAFE) >= 120
    assert len(set(SECRETS)) == len(SECRETS)
    assert len(set(SAFE)) == len(SAFE)


def test_every_secret_is_found() -> None:
    assert [text for text in SECRETS if not find_secrets(text)] == []


def test_safe_text_is_accepted() -> None:
    alarms = {text: [each.kind for each in find_secrets(text)] for text in SAFE if find_secrets(text)}
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
        "10.1.2.3 and 100.64.0.9",
        "1.1.1.1",
        "no-reply@acme.io",
        "PublicKeyToken=b03f5f7f11d50a3a",
        "checksum DE89370400440532013001",
        "SSN: 000-12-3456",
        "mnemonic: abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
        "the password's SHA-256",
    ],
)
def test_secret_lookalikes_are_accepted(text: str) -> None:
    assert find_secrets(text) == []


@pytest.mark.parametrize("kind", KNOWN)
def test_secret_kind_is_reported(kind: str) -> None:
    (secret,) = find_secrets(KNOWN[kind])
    assert secret.kind == kind


@given(SURROUNDINGS, JOINTS, st.sampled_from(sorted(KNOWN)), JOINTS, SURROUNDINGS)
@example("", " ", "phone number", " ", "tokens = tokenizer.encode(text)")
@settings(max_examples=200)
def test_secret_is_found_in_any_context(before: str, open_: str, kind: str, close: str, after: str) -> None:
    text = f"{before}{open_}{KNOWN[kind]}{close}{after}"
    start = len(before) + len(open_)
    assert any(each.start < start + len(KNOWN[kind]) and start < each.end for each in find_secrets(text))


@given(st.sampled_from(SECRETS))
def test_finding_has_position_but_not_the_secret(text: str) -> None:
    for secret in find_secrets(text):
        assert 0 <= secret.start < secret.end <= len(text)
        assert text[secret.start : secret.end] not in str(secret)


@given(st.text(max_size=400) | st.lists(st.sampled_from(SECRETS), max_size=5).map("".join))
def test_scanner_survives_any_text(text: str) -> None:
    secret = find_secrets(text)
    assert all(one.end <= other.start for one, other in pairwise(secret))


@pytest.mark.parametrize(
    "unit",
    [
        "password=",
        "password's ",
        "sk-a-",
        "a@a.",
        "lan.b@acme.io ",
        "mnemonic ",
        "seed phrase is ",
        "4111 1111 ",
        "4539 1488 0343 6467 ",
        "CCCD ",
        "079 ",
        "national id ",
        "123.456.789-",
        "DNI X1234567",
        "11010519491231",
        "admin / a@",
        "admin ",
        "credentials a:",
        "用户名密码 ",
        "with the password a1 ",
        "升级到 1.2.3.4 ",
        "numpy 1.2.3.4 ",
        "token ",
        "secret=AgA",
        "arn:aws:secret:",
        "http://a:",
        "BEGIN RSA PRIVATE KEY-----\nMIIabcdefgh1234",
        "END PRIVATE KEY ",
        "kty:oct k:aaaaaaaaaaaaaaaaaaaaaaaa ",
        "MIIabcIBAAKC",
        'WiFi.begin("a",',
        "username_pw_set(a,a,",
        '#define WIFI_PASS "',
        "key[16]={0x01,",
        "\\x2b",
        "nmcli ",
        "iwctl -P a",
        "passkey = 1",
        "wandb login a",
        "kty => EC d => aaaaaaaaaaaaaaaaaaaaaaaa ",
        "mật khẩu a a a ",
        "ssid a ",
        "u: ab p: ",
        "log in as ab and ",
        "login/pass: ab/",
        "password (a): ",
        "password, a, is ",
        'MQTTClient("a",',
        "WiFi.begin(a(),",
        "pesel\na ",
        "netsh wlan ",
        "create_ap a a ",
        'creds = {"a", ',
        'networks = [("a", ',
        "provision(a",
        "x-a-key: ",
        "app password abcd ",
        "auth=(a,'",
        "mot de passe a ",
        "password had been set to ",
        "use 'a' with '",
        "pass&a ",
        "id.json ",
        "encryption:\n key: ",
        "https://a.b/hooks/",
        "1.",
        "%41",
        "\u200b",
        "''",
        '"   ',
        "A",
    ],
)
def test_scanner_takes_linear_time_on_repetitions(unit: str) -> None:
    """A pattern that rescans a stretch from each of its starts takes 16 times as long for four times the text."""
    assert takes_linear_time(lambda size: find_secrets((unit * (size // len(unit) + 1))[:size]))


@pytest.mark.parametrize("quote", ['"', "'", "`"])
def test_scanner_takes_linear_time_on_spaces_after_a_quote(quote: str) -> None:
    assert takes_linear_time(lambda size: find_secrets(quote + " " * size))


def takes_linear_time(scan: Callable[[int], object]) -> bool:
    """Return True if four times the size takes less than eight times as long, in one of several tries."""
    scan(SIZE)
    return any(_seconds(scan, 4 * SIZE) < 8 * _seconds(scan, SIZE) for _ in range(5))


def _seconds(scan: Callable[[int], object], size: int) -> float:
    begin = time.thread_time()
    scan(size)
    return time.thread_time() - begin
