"""Credentials without a vendor's format: assignments, headers, URLs, cookies and arguments of calls."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from shared.experiences.secret_scanner.names import (
    ARGUMENT,
    BARE,
    BASE64,
    COPULA,
    EQUALS,
    GAP,
    IN_QUOTES,
    PASSWORD,
    QUOTED,
    SECRET,
    SESSION,
    SUFFIX,
    WITHOUT_QUOTES,
)
from shared.experiences.secret_scanner.placeholders import PUBLISHED_DEFAULTS, is_expression, is_placeholder, is_random
from shared.experiences.secret_scanner.rules import Candidate, SecretRule
from shared.experiences.secret_scanner.values import (
    is_bare_password,
    is_bare_secret,
    is_literal,
    is_passphrase,
    is_password,
    is_quoted_secret,
    is_token,
)

_OWN_MACHINE: Final = re.compile(
    r"@?(?:localhost|host\.docker\.internal|[a-z][\w-]*|127\.[\d.]+|0\.0\.0\.0|10\.[\d.]+|192\.168\.[\d.]+|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+|\[::1\]|[$<{%].*)"
    r"(?![\w.-])",
    re.IGNORECASE,
)
"""A host that is reached from the machine or its network only: also the name of a container."""


def _is_url_password(candidate: Candidate) -> bool:
    value = candidate.value
    host = re.sub(
        "^.*@", "", candidate.data[candidate.end : candidate.end + 60].decode("utf-8", "ignore").partition("/")[0]
    )
    if value.casefold() in PUBLISHED_DEFAULTS and _OWN_MACHINE.match(host):
        return False
    user = re.search(r"//([^:/@]*):$", candidate.lead)
    usual = is_placeholder(value) or value in ("*", "**")
    return not usual and not (user and user[1] in ("user", "username") and value in ("pw", "p", "password"))


def _is_basic(candidate: Candidate) -> bool:
    try:
        decoded = base64.b64decode(candidate.value + "=" * (-len(candidate.value) % 4))
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and decoded.isascii()


def _is_bearer(candidate: Candidate) -> bool:
    value = candidate.value
    return (
        not is_placeholder(value) and not is_expression(value) and (is_random(value) or bool(re.search(r"\d", value)))
    )


def _is_header_key(candidate: Candidate) -> bool:
    """Accept a random value of a header that ends in "key", unless it only tells requests apart."""
    return is_token(candidate) and not re.search(
        "idempotency|websocket|cache|surrogate|public|sort|row", candidate.lead, re.IGNORECASE
    )


def _is_named_value(candidate: Candidate) -> bool:
    """Accept the value of a name/value pair, as in container definitions."""
    password = re.search(PASSWORD, candidate.lead, re.IGNORECASE)
    return is_password(candidate) if password else is_quoted_secret(candidate)


CREDENTIALS: Final = (
    SecretRule("JSON web token", r"\beyJ[A-Za-z0-9_-]{8,}\.(?:eyJ)?[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)*", lambda c: not re.search(r"\.\.\.|example", c.value)),
    SecretRule("password in a URL", r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@\"'<>]*:([^\s/@\"'<>]+)@[\w\[.$-]", _is_url_password),
    SecretRule("password in a URL", r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@\"'<>]+:([^\s@\"'<>]+)@[\w\[.-]+[:/]", lambda c: not re.search(r"[/?]", c.value[:1]) and not re.match(r"\d{1,5}/", c.value) and _is_url_password(c)),
    SecretRule("token in a URL", r"\bhttps?://([A-Za-z0-9_-]{16,})@[\w.-]", lambda c: is_random(c.value) and not is_placeholder(c.value)),
    SecretRule("bearer token", r"(?i)\b(?:bearer|ssws)[ \t]+([A-Za-z0-9_.~+/=-]{16})", _is_bearer, BASE64),
    SecretRule("basic credentials", r"(?i)\bbasic[ \t]+([A-Za-z0-9+/]{6})", _is_basic, "[A-Za-z0-9+/=]"),
    SecretRule("authorization header", r"(?i)\bauthorization[\"']?[ \t]{0,3}[:=,][ \t]{0,3}[\"']?(?:[a-z0-9-]{1,20}[ \t]+)?([A-Za-z0-9_.~+/=:-]{16})", _is_bearer, BASE64),
    SecretRule("secret", r"(?im)(?:^|[\s\"'`{(,])(?:x-(?:[a-z0-9]{1,20}-){0,3}|fastly-)key[\"']?[ \t]?[:=][ \t]?[\"']?([A-Za-z0-9_.~+/=-]{12})", _is_header_key, BASE64),
    SecretRule("password", r"(?i)\bapp(?:lication)?[-_ ]?passwords?[^\n]{0,30}?[^\w]((?:[a-z0-9]{4} ){5}[a-z0-9]{4})\b", lambda c: bool(re.search(r"\d", c.value))),
    SecretRule("password", r"(?i)\bapp[-_ ]?password[\"'`]?(?:[ \t]?[:=]|[ \t](?:is|was))[ \t]?[\"'`]?((?:[a-z]{4} ){3}[a-z]{4})\b", lambda _: True),
    SecretRule("session cookie", r"(?i)\b(?:set-)?cookie[\"']?[ \t]{0,3}[:=,][ \t]{0,3}[\"']?(?:[\w.%-]+=[^;\s\"']*;[ \t]?)*?[\w.%-]+=([^;\s\"'<>]{16})", is_token, r"[^;\s\"'<>]"),
    SecretRule("session id", r"(?i)\b(?:phpsessid|jsessionid|asp\.net_sessionid)=([a-z0-9]{20})", lambda c: is_literal(c) and len(set(c.value)) > 7, "[A-Za-z0-9]"),
    SecretRule("session id", rf"(?i)(?:{SESSION})[\"'`\]]{{0,2}}{GAP}[:=]{GAP}[\"'`]?([A-Za-z0-9%._~+/=-]{{12}})", is_token, "[A-Za-z0-9%._~+/=-]"),
    SecretRule("password", rf"(?i)(?:{PASSWORD}){SUFFIX}(?:{EQUALS}|{COPULA}){GAP}{QUOTED}", is_password, IN_QUOTES),
    SecretRule("password", rf"(?i)(?:{PASSWORD}){SUFFIX}(?:{EQUALS}|{COPULA}){GAP}{BARE}", is_bare_password, WITHOUT_QUOTES),
    SecretRule("secret", rf"(?i)(?:{SECRET}){SUFFIX}{EQUALS}{GAP}{QUOTED}", is_quoted_secret, IN_QUOTES),
    SecretRule("secret", rf"(?i)(?:{SECRET}){SUFFIX}(?:{EQUALS}|{COPULA}){GAP}[\"'`]?{BARE}", is_bare_secret, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)\b(?:define|set\w*|put\w*|add\w*|append|header|with\w*|env|config|property)\([ \t]?[\"'][\w.-]*?(?:{PASSWORD}|secret|api_?key|token)[\w-]*[\"'][ \t]?,[ \t]?[\"']([^\"'\n]{{3}})", lambda c: is_password(c) and (bool(re.search(r"\d", c.value)) or is_random(c.value)), IN_QUOTES),
    SecretRule("password", r"(?i)(?:(?:password|passwd|pwd|psk|secret|apikey|api_key)[({]|\bpass\{)[ \t]?[\"']([^\"'\n]{3})", lambda c: is_password(c) and not re.fullmatch(r"[a-z_-]+|[A-Z0-9_]+", c.value), IN_QUOTES),
    SecretRule("password", r"(?i)(?:password|passwd|pwd|secret|apikey|api-key|token|keymaterial)[\"']?>[ \t]?([^<\n]{3})", lambda c: is_password(c) and c.after(2) == "</", r"[^<\n]"),
    SecretRule("secret", r"(?i)[?&;](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|key|auth|code)=([A-Za-z0-9%_.~+/=-]{16})", is_token, "[A-Za-z0-9%_.~+/=-]"),
    SecretRule("secret", rf"(?i)name[\"']?[ \t]*[:=][ \t]*[\"']?[\w.-]*?(?:{PASSWORD}|secret|api[-_]?key|token){SUFFIX}[\"']?[,;]?\s+[\"']?value[\"']?[ \t]*[:=][ \t]*[\"']?([^\s\"',]{{4}})", _is_named_value, ARGUMENT),
    SecretRule("password", r"(?i)\b(?:key|name|id)=[\"'][\w.:-]*?(?:password|passwd|pwd|secret|api[-_]?key|token)[\"'][ \t]{1,4}value=[\"']([^\"'\n]{3})", is_password, IN_QUOTES),
    SecretRule("password", r"(?:^|[\s'\"`(=])[\w.-]+:([^\s:@/'\"]{3,80})@(?:localhost\b|\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)*:\d{2,5})", is_literal),
    SecretRule("password", r"(?i)\b(?:auth|basicauth|credentials|passwordcredentials|networkcredential|httpbasicauth|passwordauthentication|log_?in|sign_?in|authenticate)\b[ \t]*[=(:][ \t]*[(\[{]?[ \t]*['\"][^'\"\n]{1,80}['\"][ \t]*,[ \t]*['\"]([^'\"\n]{3})", is_password, IN_QUOTES),
    SecretRule("password", r"(?i)\bauth[ \t]?=[ \t]?\([ \t]?[a-z_][\w.]{1,40},[ \t]?[\"']([^\"'\n]{3})", lambda c: is_password(c) and is_passphrase(c.value), IN_QUOTES),
    SecretRule("password", r"\b(?:getConnection|connect)\([^()\n]{1,120},[ \t]*[\"'][^\"'\n]{1,60}[\"'],[ \t]*[\"']([^\"'\n]{3})", lambda c: is_password(c) and bool(re.search(r"[^a-z_]", c.value)), IN_QUOTES),
)  # fmt: skip
