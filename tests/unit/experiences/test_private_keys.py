"""Private keys are found however their lines are wrapped, and public keys pass."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from shared.experiences.secret_scanner import find_secrets
from tests.data.secret_corpus.drawing import framed, key_lines, url_base64

if TYPE_CHECKING:
    from collections.abc import Callable

PRIVATE: Final = {
    "RSA PRIVATE KEY": "MIIEpAIBAAKCAQEA",
    "EC PRIVATE KEY": "MHcCAQEEI",
    "DSA PRIVATE KEY": "MIIBugIBAAKBgQ",
    "PRIVATE KEY": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    "ENCRYPTED PRIVATE KEY": "MIIFLTBXBgkqhkiG9w0BBQ0wSjApBgkq",
    "OPENSSH PRIVATE KEY": "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU",
    "PGP PRIVATE KEY BLOCK": "lQVYBF",
}
PUBLIC: Final = {"PUBLIC KEY": "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A", "CERTIFICATE": "MIIDazCCAlOgAwIBAgIU"}
WRAPPINGS: Final[dict[str, Callable[[list[str]], str]]] = {
    "quote": lambda lines: "\n".join(f"> {line}" for line in lines),
    "compose": lambda lines: "\n".join(f"api-1  | {line}" for line in lines),
    "kubectl": lambda lines: "\n".join(f"2026-03-01T10:11:12.123456789Z {line}" for line in lines),
    "syslog": lambda lines: "\n".join(f"Mar  1 10:11:12 host sshd[99]: {line}" for line in lines),
    "shell comment": lambda lines: "\n".join(f"# {line}" for line in lines),
    "Javadoc": lambda lines: "\n".join(f" * {line}" for line in lines),
    "removed": lambda lines: "\n".join(f"-{line}" for line in lines),
    "added": lambda lines: "\n".join(f"+{line}" for line in lines),
    "grep": lambda lines: "\n".join(f"id_rsa:{number}:{line}" for number, line in enumerate(lines)),
    "numbered": lambda lines: "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines)),
    "table": lambda lines: f"| key | {'<br>'.join(lines)} |",
    "strings": lambda lines: "\n".join(f'  "{line}\\n" +' for line in lines),
    "one line": "\\n".join,
    "narrow": lambda lines: "\n".join(f"> {line[at : at + 32]}" for line in lines for at in range(0, len(line), 32)),
    "without begin": lambda lines: "\n".join(lines[1:]),
}
JWKS: Final[dict[str, dict[str, int]]] = {
    "EC": {"x": 32, "y": 32, "d": 32},
    "OKP": {"x": 32, "d": 32},
    "RSA": {"n": 256, "e": 3, "d": 256, "p": 128, "q": 128},
    "oct": {"k": 32},
}


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_private_key_is_found_in_any_wrapping(name: str, wrapping: str) -> None:
    assert find_secrets(WRAPPINGS[wrapping](framed(name, key_lines(PRIVATE[name]))))


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_public_key_is_accepted_in_any_wrapping(name: str, wrapping: str) -> None:
    assert find_secrets(WRAPPINGS[wrapping](framed(name, key_lines(PUBLIC[name])))) == []


@pytest.mark.parametrize("kind", JWKS)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("reverse", [False, True])
def test_private_jwk_is_found_and_its_public_part_accepted(kind: str, indent: int | None, reverse: bool) -> None:
    members = {"kty": kind, "kid": "1"} | {name: url_base64(size) for name, size in JWKS[kind].items()}
    key = dict(sorted(members.items(), reverse=reverse))
    public = {name: value for name, value in key.items() if name not in ("d", "k", "p", "q")}
    assert "private key" in {each.kind for each in find_secrets(json.dumps(key, indent=indent))}
    assert find_secrets(json.dumps(public, indent=indent)) == []
