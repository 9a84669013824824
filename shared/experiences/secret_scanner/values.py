"""Checks of values: passwords, tokens and passphrases, apart from placeholders, code and sentences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from shared.experiences.secret_scanner.placeholders import PUBLISHED_DEFAULTS, is_expression, is_placeholder, is_random
from shared.experiences.secret_scanner.references import is_reference

if TYPE_CHECKING:
    from shared.experiences.secret_scanner.rules import Candidate

SHORTEST_PASSPHRASE: Final = 8
"""The fewest characters that Wi-Fi accepts."""
_ENCODED: Final = re.compile(
    r"(?:base|sha|md|aes|utf|rot|pbkdf)-?\d+(?:[-_](?:encoded|encrypted|hashed|hash|encoding))?", re.IGNORECASE
)
_GRAMMAR: Final = re.compile(
    r"\b(?:a|an|and|any|are|as|at|be|by|can|cannot|enter|for|in|incorrect|invalid|is|least|long|"
    r"match|minimum|must|new|no|not|of|on|or|please|required|reset|short|should|that|the|then|this|to|too|use|"
    r"was|weak|when|with|wrong|you|your|password|passwords|characters|phải|không|của|là|và|bắt|buộc)\b"
)
"""Function words, and words of messages about passwords. Passphrases contain neither."""


def is_password(candidate: Candidate) -> bool:
    """Accept any literal: passwords are often words."""
    value = candidate.value.strip()
    return (
        len(value) >= 3
        and not is_placeholder(value)
        and not is_expression(value)
        and value.casefold() not in PUBLISHED_DEFAULTS
        and not _continues(candidate)
        and not _is_sentence(value)
        and not re.match(
            r"https?://[^@]*$|[\w./-]+\.(?:html?|txt|json|ya?ml|php|py|js|tsx?|css|env)$|/[\w/.-]+$|[A-Z]+(?:_[A-Z]+)+$",
            value,
        )
        and not is_reference(candidate)
    )


def before_other_script(value: str) -> str:
    """Return the value up to letters of another script, which continue the sentence, without its punctuation."""
    beginning = re.split(r"[\u0e00-\u0e7f\u3000-\u9fff\uac00-\ud7a3\uff00-\uffef]", value.lstrip("「『【《"))[0]
    return beginning.rstrip(".:!?*,")


def is_bare_password(candidate: Candidate) -> bool:
    """Accept an unquoted value if it looks like a password or is the whole value of a setting."""
    value = before_other_script(candidate.value + _joined(candidate))
    if not is_password(candidate) or is_placeholder(value) or len(value) < 4 or _ENCODED.fullmatch(value):
        return False
    if re.search(r"[0-9]", value) or re.search(r"[A-Za-z][!@#$%^&*+~][A-Za-z]|[!@#$%^&*]$", value):
        return not re.fullmatch(r"[\d.,:%-]+|\d+[-_ ]?[a-z]{1,12}|\w+/\w+.*", value) or is_setting(candidate)
    return is_setting(candidate) and bool(re.fullmatch(r"[a-z]{6,}", value))


def _joined(candidate: Candidate) -> str:
    """Return what "&" joins to the value, unless it is the next parameter of a query."""
    joined = re.match(r"&[^\s\"'`<>,;|(){}\[\]\\=&]+(?![=&])", candidate.after(40))
    return joined[0] if joined else ""


def is_bare_secret(candidate: Candidate) -> bool:
    return is_token(candidate) or (is_setting(candidate) and "_" not in candidate.value and is_quoted_secret(candidate))


def is_setting(candidate: Candidate) -> bool:
    """Return True if the value ends a setting in an .env, .ini or YAML file."""
    line_ends = re.match(r"[ \t]*(?:#.*)?(?:\r?\n|$)", candidate.after(80)) is not None
    line = candidate.before(60) + candidate.lead
    environment = re.fullmatch(r"[ \t-]*(?:export |ENV |set |ARG )?[A-Z0-9_]+=", line)
    key_value = re.fullmatch(r"(?:[ \t-]*[\w.-]+: *|[\w.-]+ ?= ?)", line)
    return line_ends and bool(environment or key_value)


def _continues(candidate: Candidate) -> bool:
    """Return True if the value continues as a call or a subscript."""
    return bool(re.match(r"[(\[]|\{\{?[\w.]", candidate.after(3))) and not candidate.after(1).isspace()


def _is_sentence(value: str) -> bool:
    """Return True if the value reads as prose: a message about a password, not a password."""
    words = [word.strip(".,:;!?'()") for word in value.split()]
    if len(words) < 2 or sum(map(str.isalpha, words)) * 3 < len(words) * 2:
        return False
    passphrase = len(words) > 3 or any(map(str.isdigit, words))
    return not (passphrase and value.islower() and not _GRAMMAR.search(value))


def is_token(candidate: Candidate) -> bool:
    """Accept a random literal, which cannot be a name, path or URL."""
    value = candidate.value.strip()
    if len(value) < 8 or is_placeholder(value) or is_expression(value) or _continues(candidate) or " " in value:
        return False
    if re.match(r"(?:https?|arn|urn|projects|s3|secret|aws|gs):?/?/?[:/]", value):
        return False
    if re.match(r"[.~]{0,2}/", value) and not any(map(is_random, value.split("/"))):  # a path
        return False
    return is_random(value) and not _is_elsewhere(candidate)


def _is_elsewhere(candidate: Candidate) -> bool:
    """Return True for a reference to a secret, a ciphertext, and what the name calls public."""
    return is_reference(candidate) or re.search(r"public[-_ ]?key[-_ ]?$", candidate.before(16), re.I) is not None


def is_quoted_secret(candidate: Candidate) -> bool:
    """Accept a quoted value after the name of a secret, even if it is not random, unless it can be a name."""
    value = candidate.value.strip()
    if is_token(candidate):
        return True
    return (
        len(value) >= 6
        and not is_placeholder(value)
        and not is_expression(value)
        and " " not in value
        and bool(re.search(r"[0-9!@#$%^&*]", value))
        and bool(re.search(r"[A-Za-z]", value))
        and not re.fullmatch(
            r"[a-z0-9]+(?:[-_./:][A-Za-z0-9]+)+|[A-Z0-9]+(?:_[A-Z0-9]+)+|v\d+|[\d.]+\w{0,3}|/.*|https?:.*", value
        )
        and not _is_elsewhere(candidate)
    )


def is_literal(candidate: Candidate) -> bool:
    if candidate.value[:1].isspace():  # the quote closed an earlier string
        return False
    return (
        not is_placeholder(candidate.value)
        and not is_expression(candidate.value)
        and candidate.value.casefold() not in PUBLISHED_DEFAULTS
        and len(candidate.value) >= 3
    )


_PACKAGE_OR_ADDRESS: Final = re.compile(
    r"[a-z][\w.-]*@v?\d{1,2}(?:\.\d+)*(?![\d\w])|[\w.-]+@(?:[$<{%]|[\w-]+\.[a-z]{2,}|\d{1,3}(?:\.\d{1,3}){3})"
)


def is_mixed(value: str) -> bool:
    """Return True if a word and a number are joined by punctuation as in passwords, such as Abc@123."""
    if is_placeholder(value) or _PACKAGE_OR_ADDRESS.match(value):
        return False
    lower_case = re.match(r"[a-z]{3,}[@#!$*]\d{3,}", value)
    return bool(lower_case) or all(re.search(part, value) for part in ("[a-z]", "[A-Z]", "[0-9]", "[@#!$%^&*+~]"))


_TECHNICAL: Final = re.compile(
    r"(?:sha|md|base|pbkdf|bcrypt|argon|blake|aes|des|rsa|utf|oauth|x\.?|pkcs|rfc|iso|nist|cve|ipv|http|tls|ssl|win(?:dows)?|es|h|"
    r"i|k|log4j|ubuntu|debian|python|java|node|mysql|postgres\w*|oracle|api|web|phase|step|page|part|level|type|field|test|user|(?:n?var)?char|v|no)"
    r"[-_.]?\d+\w{0,4}|\d+[-_ ]?[a-z]{1,12}|[\d.,:%/-]+|.*://.*|.*\.(?:html?|txt|json|ya?ml|php|py|js|ts|css|env|md)",
    re.IGNORECASE,
)


def is_passphrase(value: str) -> bool:
    """Return True if words and numbers are joined as in tulip2020 or tulip-Gran470-Foxes, and no product or standard is meant."""
    digits = sum(map(str.isdigit, value))
    return (
        len(value) >= 6
        and value.isascii()
        and "=" not in value
        and sum(map(str.isalpha, value)) >= 3
        and (digits >= 2 or (digits == 1 and re.search("[A-Z@#!$%&*]", value[1:]) is not None))
        and not is_placeholder(value)
        and not is_expression(value)
        and _TECHNICAL.fullmatch(value) is None
        and _PACKAGE_OR_ADDRESS.match(value) is None
    )
