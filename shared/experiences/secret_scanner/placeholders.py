"""Heuristics that tell placeholders and code expressions from secrets."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

_MASKED: Final = re.compile(r"[*•●…█]{2,}|\.{3,}|[xX]{4,}|([0-9a-zA-Z])\1{7,}|^[-_.#=~ ]+$")
_NAMED: Final = re.compile(r"^(?:<.*>?|\[.*\]|\{.*\}?|\$.*|%\w+%?|#\{.*|@@?\w*|:\w+|__\w+__|&\w+|!\w+.*)$", re.DOTALL)
_DESCRIPTIVE: Final = re.compile(
    r"(?:^|[^a-z])examples?(?:[^a-z0-9]|$)|(?-i:EXAMPLE)|placeholder|redacted|change[-_ ]?(?:me|this|it)|replace[-_ ]?(?:me|this|with)|insert[-_ ]|"
    r"(?:^|[^a-z])(?:your|my)[-_ ]?(?:own|real|actual|api|secret|token|password|pass|key|auth|access|app|bot|client|"
    r"github|openai|aws|stripe|slack|db|database|new|username|user|jwt|private)|"
    r"(?:^|[-_ ])(?:here|goes[-_ ]here|to[-_ ]?be[-_ ]?(?:set|filled|replaced|defined))$|"
    r"^(?:your|enter|insert|put|paste|fill)(?:[-_ ]|$)|^(?:the|some|any|a|an)[-_ ]|"
    r"mật[ _-]?khẩu|của[ _-]?bạn|你的|您的|替换|示例|密码|占位",
    re.IGNORECASE,
)
_COMMON_VALUES: Final = re.compile(
    r"(?:test|fake|dummy|mock|sample|demo)[-_]?(?:pass(?:word)?|token|secret|key|user)|password|passwd|passphrase|passcode|pass|pwd|pw|secret|secrets|token|key|apikey|api_key|api-key|"
    r"access_token|accesstoken|refresh_token|auth_token|authtoken|client_secret|secret_key|secretkey|private_key|"
    r"mypassword|mysecret|mytoken|mykey|mypass|credentials|credential|test|testing|tests|dummy|fake|sample|demo|"
    r"todo|tbd|fixme|none|null|nil|undefined|true|false|yes|no|on|off|foo|bar|baz|qux|foobar|foobaz|bogus|mock|"
    r"stub|default|empty|unset|value|string|str|text|hidden|masked|omitted|removed|scrubbed|secured|filtered|"
    r"sanitized|encrypted|hashed|plaintext|plain|varchar|char|required|optional|nullable|bool|boolean|int|integer|"
    r"number|any|unknown|bytes|object|secretstr|input|prompt|stdin|readonly|invalid|valid|missing|expired|"
    r"incorrect|wrong|correct|the|and|not|abc|bearer|basic|digest|oauth|oauth2|jwt|saml|ldap|never|always|"
    r"current|session|cookie|email|username|user|hash|bcrypt|argon2|argon2id|scrypt|file|env|environment|vault|"
    r"keychain|keyring|manual|auto|automatic|random|generated|header|body|query|form|disabled|enabled|forgot|"
    r"reset|change|confirm|repeat|login|signin|signup|self|config|settings|process|"
    r"(?:[a-z]+[-_])+(?:password|passwd|passphrase|pass|pwd|secret|token|api[-_]?key)",
    re.IGNORECASE,
)
PUBLISHED_DEFAULTS: Final = frozenset(
    re.findall(
        r"\w+",
        "admin airflow changeit changeme docker elastic grafana guest keycloak mariadb minioadmin mongo mongodb mysql "
        "neo4j postgres rabbitmq redis root secret sonar test user",
    )
)
"""Passwords that the makers of databases and images publish: they guard nothing but a machine of one's own."""
_EXPRESSION: Final = re.compile(
    r"^(?:[A-Za-z_$][\w$]*(?:(?:\??\.|::|->)[A-Za-z_$][\w$]*)+|(?:process\.|os\.|env\.|ENV\b|secrets?\.|vars\.|var\.|"
    r"local\.|data\.|self\.|this\.|config\.|settings\.|getenv|import\.meta).*)$"
)
_UNITS: Final = re.compile(r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]+")
_VOWELS: Final = re.compile(r"[aeiouyAEIOUY]")


def is_placeholder(value: str) -> bool:
    """Return True if `value` is a placeholder rather than a secret."""
    bare = value.strip().strip("\"'`")
    return (
        bool(_COMMON_VALUES.fullmatch(bare))
        or bool(_MASKED.search(bare) or _NAMED.match(bare) or _DESCRIPTIVE.search(bare))
        or bool(re.search(r"\{[A-Za-z_][\w.()\[\]', ]*\}", bare))
        or ("${" in bare or "{{" in bare or "$(" in bare or ("<" in bare and ">" in bare))
        or len(set(bare)) < 3
    )


def is_sample(key: str) -> bool:
    """Return True if `key`, in a vendor's format, is a documentation sample."""
    return bool(_MASKED.search(key)) or bool(re.search("example|placeholder|redacted|your[-_]", key, re.IGNORECASE))


def changes(value: str) -> int:
    """Count the changes from letter to digit, from digit to letter, and from lower to upper case."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.isalpha() else "" for c in value]
    return sum(1 for one, other in pairwise(kinds) if one and other and one != other and one + other != "ul")


def is_expression(value: str) -> bool:
    """Return True if `value` is code that reads a secret from elsewhere."""
    return bool(_EXPRESSION.match(value)) and not (len(value) >= 20 and is_random(value.rpartition(".")[2]))


def is_random(value: str) -> bool:
    """Return True if `value` looks random: its letters and digits alternate often, or contain no word."""
    units = _UNITS.findall(value)
    letters = [unit for unit in units if unit.isalpha()]
    digits = [unit for unit in units if unit.isdigit()]
    if len(value) < 8 or not letters:
        return len(value) >= 16 and len(units) == 1 and len(set(value)) > 5
    return changes(value) >= 3 and (
        changes(value) * 5 >= len(value) or not all(map(_is_word, letters)) or len(digits) > 2
    )


def _is_word(letters: str) -> bool:
    """Return True if each camel-case part of `letters` is pronounceable or short."""
    return all(_VOWELS.search(part) or len(part) <= 4 for part in re.findall(r"[A-Z]*[a-z]+|[A-Z]+", letters))
