"""Private keys: PEM and SSH2 blocks in any line wrapping, bodies without a header, PuTTY files and JWKs."""

from __future__ import annotations

import re
from typing import Final

from shared.experiences.secret_scanner.placeholders import changes, is_sample
from shared.experiences.secret_scanner.rules import Candidate, SecretRule

_NAME: Final = r"(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?"
_FRAME: Final = re.compile(r"\b(?:BEGIN|END) [A-Z]")
_HEADERS: Final = re.compile(
    r"\\[nrt]|[\s\"'+,\\-]|\w+-\w+: [^\n]*\n|(?:Version|Comment|Proc-Type|DEK-Info|Hash): ?[^\n]*"
)
_RUN: Final = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_SHORTEST_KEY: Final = 40
_REACH: Final = 900
"""The bytes next to a header in which a key's first or last lines stand, each after its prefix."""


def _is_material(text: str) -> bool:
    """Return True if `text` holds enough of a key: one run from its beginning, or dense runs behind prefixes."""
    run = re.match(r"[A-Za-z0-9+/=]*", _HEADERS.sub("", text))
    if run is not None and len(run[0]) >= _SHORTEST_KEY and _is_dense(run[0]):
        return True
    return sum(len(part) for part in _RUN.findall(text) if _is_dense(part)) >= _SHORTEST_KEY


def _is_dense(run: str) -> bool:
    """Return True if `run` is base64 of random bytes, which a path, name or hexadecimal hash is not."""
    return (
        re.search("[a-z]", run) is not None
        and re.search("[A-Z]", run) is not None
        and re.search("[0-9+/]", run) is not None
        and changes(run) * 5 >= len(run)
    )


def _begins_key(candidate: Candidate) -> bool:
    return _is_material(_FRAME.split(candidate.after(_REACH), maxsplit=1)[0])


def _ends_key(candidate: Candidate) -> bool:
    """Return True if the lines before an END line are a key whose BEGIN line is missing."""
    before = candidate.preceding(_REACH)
    return "BEGIN" not in before and _is_material(_FRAME.split(before)[-1])


_BASE64: Final = "[A-Za-z0-9+/]"
_DER: Final = (
    rf"MII{_BASE64}{{3}}IB(?:AAK[BC]|ADANBgkqhkiG9w0BAQ|AzCC)|MII{_BASE64}{{5}}BgkqhkiG9w0BBQ0|MIHsMFcGCSqGSIb3DQEFDTBKM|"
    rf"MI[GH]{_BASE64}AgEAMB[AM]GByqGSM49AgEG|MI[GH]{_BASE64}AgEBB[DE]|MH[cQ]CAQEEI|M[CE]{_BASE64}CAQAwBQYDK2V[n-z]B|"
    r"b3BlbnNzaC1rZXktdjE|P2/56wAAA"
)
"""The first characters of encodings: PKCS #1, #8 and #12, SEC 1, encrypted PKCS #8, OpenSSH and SSH2."""

_QUOTE: Final = r"\\{0,3}[\"']?"
_IS: Final = r"\s{0,8}(?:=>|[:=|])\s{0,8}"
"""The separators of a member and its value in JSON, code and tables."""
_KEY_TYPE: Final = re.compile(rf"\bkty{_QUOTE}{_IS}{_QUOTE}(EC|OKP|RSA|oct)\b")
_LARGEST_JWK: Final = 4000


def _is_private_jwk(candidate: Candidate) -> bool:
    """Return True if the object around a private member names a key type that has it."""
    before = candidate.preceding(_LARGEST_JWK).rpartition("{")[2]
    after = candidate.after(_LARGEST_JWK).partition("}")[0]
    types = set(_KEY_TYPE.findall(before)) | set(_KEY_TYPE.findall(after))
    symmetric = re.search(r"\bk\W", candidate.lead) is not None
    return ("oct" in types if symmetric else bool(types - {"oct"})) and not is_sample(candidate.value)


PRIVATE_KEYS: Final = (
    SecretRule("private key", rf"BEGIN {_NAME}", _begins_key),
    SecretRule("private key", rf"END {_NAME}", _ends_key),
    SecretRule("private key", rf"(?:^|[^A-Za-z0-9+/])((?:{_DER}){_BASE64}{{20}})", lambda _: True, _BASE64),
    SecretRule("private key", r"PuTTY-User-Key-File-\d: ", lambda c: "Private-Lines:" in c.after(4000)),
    SecretRule("private key", rf"\b(?:[dkpq]|d[pq]|qi){_QUOTE}{_IS}{_QUOTE}([A-Za-z0-9_-]{{20}})", _is_private_jwk, "[A-Za-z0-9_-]"),
)  # fmt: skip
