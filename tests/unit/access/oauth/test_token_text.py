"""Codes and tokens as texts: each names its kind, tenant and grant, and other texts name nothing."""

from __future__ import annotations

import base64

import pytest

from shared.access.oauth.token_text import TokenKind, hash_of, new_token, read_token

GRANT = "0123456789abcdef"
KINDS: tuple[TokenKind, ...] = ("code", "access", "refresh")


@pytest.mark.parametrize("tenant", ["a", "ab", "abc", "abcd", "tenant-1@example.com", "x" * 128])
@pytest.mark.parametrize("kind", KINDS)
def test_text_names_its_tenant_and_grant(kind: TokenKind, tenant: str) -> None:
    text = new_token(kind, tenant, GRANT)
    reference = read_token(kind, text)
    assert reference
    assert (reference.tenant_id, reference.grant_id, reference.hash) == (tenant, GRANT, hash_of(text))
    assert text != new_token(kind, tenant, GRANT)


def test_text_of_one_kind_is_none_of_another() -> None:
    for kind in KINDS:
        for other in KINDS:
            assert (read_token(other, new_token(kind, "tenant", GRANT)) is None) is (kind != other)


def named(tenant: bytes, grant: str = GRANT, secret: str = "s" * 43) -> str:
    return f"khoa_{base64.urlsafe_b64encode(tenant).decode().rstrip('=')}.{grant}.{secret}"


def test_malformed_texts_name_nothing() -> None:
    assert read_token("access", named(b"tenant"))
    for text in (
        "",
        named(b"tenant") + "\n",
        named(b"tenant") + "s",
        " " + named(b"tenant"),
        named(b"tenant", secret="s" * 42),
        named(b"tenant", grant=GRANT[1:]),
        named(b"tenant", grant=GRANT.upper()),
        named(b"tenant#grants"),
        named(b"tenant\n"),
        named(b"-tenant"),
        named(b"x" * 129),
        named("ténant".encode()),
        named(b"\xff\xff"),
        f"khoa_A.{GRANT}.{'s' * 43}",
        f"khoa_AAAAA.{GRANT}.{'s' * 43}",
        f"khox_{named(b'tenant').removeprefix('khoa_')}",
    ):
        assert read_token("access", text) is None, text
