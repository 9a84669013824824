"""Credentials without a vendor's format: recognised by assignments, headers, URLs and command lines.

Seed phrases of wallets are twelve or more words after a name such as "recovery phrase".
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from shared.experiences.secret_scanner.placeholders import changes, is_expression, is_placeholder, is_random
from shared.experiences.secret_scanner.rules import Candidate, SecretRule

_PASSWORD: Final = (
    r"pass[-_ ]?(?:word|wd|phrase|code)s?|passwort|\bpass|[_-]pass|\bpwd|[_a-z]pwd|\bpw|_pw|_psw|\bpsk|[-_]psk|\bmk|mật khẩu(?:[ \t][a-zà-ỹ]{1,12}){0,2}?|mat[-_ ]?khau|"
    r"密码|口令|暗号"
)
_SECRET: Final = (
    r"secrets?|tokens?|credentials?|api[-_. ]?keys?|(?:access|secret|private|auth|account|functions?|subscription|instrumentation|server|host|openai|azure|application|shared|client|app|signing|"
    r"encryption|encrypt|master|license|service|admin|storage|session|webhook|cookie|deploy|bot|crypto|aes|hmac|jwt|ssh|root)"
    r"[-_. ]?keys?|shared[-_]?access[-_]?key|appsecret|_auth|\bauth|[-_]salt|\bjwt|bearer|"
    r"khoá (?:api|bí mật)|khóa (?:api|bí mật)|mã bí mật|密钥|秘钥|令牌|私钥"
)
_SESSION: Final = (
    r"(?:php|j|asp)?sess(?:ion)?[-_]?(?:id|token|key)?|connect\.sid|\bsid|auth[-_]?cookie|csrf[-_]?token|"
    r"asp\.net_sessionid|remember[-_]?(?:me|token)"
)
_SUFFIX: Final = (
    r"(?:[-_.]?(?:value|base|prod|production|dev|staging|live|test|old|new|key|id|string|hex|b64|base64|main|admin|user|"
    r"root|db|[0-9]{1,3})){0,2}"
)
_GAP: Final = r"[ \t]{0,8}"
_TYPE: Final = r"(?:[ \t]?:[ \t]?[A-Za-z_&][\w.<>\[\]|? ]{0,30})?"
_WHOSE: Final = r"(?:[ \t](?:for|of|to|on|in|của|cho|trên)[ \t](?:(?:the|our|my)[ \t])?[\w\p{Latin}.-]+)?"
_EQUALS: Final = rf"""["'`\]\)}}*\\]{{0,4}}{_WHOSE}{_TYPE}{_GAP}(?::=|=>|[=!]?={{1,2}}|::?|\?=)"""
_COPULA: Final = (
    rf"{_WHOSE}{_GAP}"
    r"(?:(?:here |now |đang |hiện )?(?:is|was|are|là|as|to|of|with|thành|bằng)[ \t:]|"
    r"(?:就|曾|曾经|原来|以前|之前|现在|一直)?(?:是|为|為|叫)|改成|改为|设为|设置为|设成)[ \t:]{0,3}"
)
_QUOTED: Final = r"""(?:[rbufRBUF]{1,2}|@|L)?\\?["'`]([^"'`\\\n])"""
_IN_QUOTES: Final = r"""[^"'`\\\n]"""
_BARE: Final = r"""([^\s"'`<>,;&|(){}\[\]\\]{4})"""
_WITHOUT_QUOTES: Final = r"""[^\s"'`<>,;&|(){}\[\]\\]"""
_ARGUMENT: Final = r"[^\s'\"]"
_BASE64: Final = "[A-Za-z0-9_+/=.~-]"


_GRAMMAR: Final = re.compile(
    r"\b(?:a|an|and|any|are|as|at|be|by|can|cannot|enter|for|in|incorrect|invalid|is|least|long|"
    r"match|minimum|must|new|no|not|of|on|or|please|required|reset|short|should|that|the|then|this|to|too|use|"
    r"was|weak|when|with|wrong|you|your|password|passwords|characters|phải|không|của|là|và|bắt|buộc)\b"
)
"""Function words, and words of messages about passwords. Passphrases contain neither."""


def _is_password(candidate: Candidate) -> bool:
    """Accept any literal: passwords are often words."""
    value = candidate.value.strip()
    return (
        len(value) >= 3
        and not is_placeholder(value)
        and not is_expression(value)
        and not _continues(candidate)
        and not _is_sentence(value)
        and not re.match(
            r"https?://[^@]*$|[\w./-]+\.(?:html?|txt|json|ya?ml|php|py|js|tsx?|css|env)$|/[\w/.-]+$|[A-Z]+(?:_[A-Z]+)+$",
            value,
        )
    )


def _is_bare_password(candidate: Candidate) -> bool:
    """Accept an unquoted value if it looks like a password or is the whole value of a setting."""
    value = candidate.value.rstrip(".:!?*。")
    if not _is_password(candidate) or is_placeholder(value) or len(value) < 4:
        return False
    if re.search(r"[0-9]", value) or re.search(r"[A-Za-z][!@#$%^&*+~][A-Za-z]|[!@#$%^&*]$", value):
        return not re.fullmatch(r"[\d.,:%-]+|\d+[-_ ]?[a-z]{1,12}|\w+/\w+.*", value) or _is_setting(candidate)
    return _is_setting(candidate) and bool(re.fullmatch(r"[a-z]{6,}", value))


def _is_bare_secret(candidate: Candidate) -> bool:
    return _is_token(candidate) or (
        _is_setting(candidate) and "_" not in candidate.value and _is_quoted_secret(candidate)
    )


def _is_setting(candidate: Candidate) -> bool:
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


def _is_token(candidate: Candidate) -> bool:
    """Accept a random literal, which cannot be a name, path or URL."""
    value = candidate.value.strip()
    if len(value) < 8 or is_placeholder(value) or is_expression(value) or _continues(candidate) or " " in value:
        return False
    if re.match(r"(?:https?|file|arn|urn|projects|s3|vault|op|secret|aws|gs):?/?/?[:/]", value):
        return False
    if re.match(r"[.~]{0,2}/", value) and not any(map(is_random, value.split("/"))):  # a path
        return False
    return is_random(value)


def _is_quoted_secret(candidate: Candidate) -> bool:
    """Accept a quoted value after the name of a secret, even if it is not random, unless it can be a name."""
    value = candidate.value.strip()
    if _is_token(candidate):
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
    )


def _is_key_material(candidate: Candidate) -> bool:
    """Return True if enough text follows a PEM header to be a key."""
    body = re.sub(
        r"\\[nrt]|[\s\"'+,\\]|\w+-\w+: [^\n]*\n|(?:Version|Comment|Proc-Type|DEK-Info|Hash): ?[^\n]*",
        "",
        candidate.after(600),
    )
    run = re.match(r"[A-Za-z0-9+/=]*", body)
    return run is not None and len(run[0]) >= 40 and len(set(run[0])) > 8


def _is_url_password(candidate: Candidate) -> bool:
    value = candidate.value
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


def _is_token_in_prose(candidate: Candidate) -> bool:
    """Accept a random token in a sentence, unless the sentence calls it a hash or an id."""
    named = re.search(
        r"commit|hash|sha|md5|checksum|digest|etag|revision|uuid|trace|span|request", candidate.lead, re.IGNORECASE
    )
    return not named and len(candidate.value) >= 12 and _is_token(candidate)


def _is_password_in_prose(candidate: Candidate) -> bool:
    """Accept a value next to the word "password" without an assignment, if it cannot be a word."""
    value = candidate.value.rstrip(".:!?*。,")
    known = re.search(r"sha\d|base64|pbkdf2|md5|bcrypt|argon2|oauth2|utf-?8|v\d|https?:|[/\\]", value, re.IGNORECASE)
    return not known and _is_password(candidate) and len(value) >= 6 and (changes(value) >= 2 or _is_mixed(value))


_ACCOUNT: Final = (
    r"tài khoản|tai khoan|\btk\b|accounts?\b|\blog[- ]?in\b|\busers?\b|\busername\b|credentials?\b|đăng nhập|dang nhap|"
    r"账号|帐号|账户|用户名?|登录|\b(?:admin|administrator|root|sa|postgres|oracle|operator|pi)\b"
)
_PACKAGE_OR_ADDRESS: Final = re.compile(r"[a-z][\w.-]*@v?\d{1,2}(?:\.\d+)*(?![\d\w])|[\w.-]+@[\w-]+\.[a-z]{2,}")


def _is_mixed(value: str) -> bool:
    """Return True if a word and a number are joined by punctuation as in passwords, such as Abc@123."""
    if is_placeholder(value) or _PACKAGE_OR_ADDRESS.match(value):
        return False
    lower_case = re.match(r"[a-z]{3,}[@#!$*]\d{3,}", value)
    return bool(lower_case) or all(re.search(part, value) for part in ("[a-z]", "[A-Z]", "[0-9]", "[@#!$%^&*+~]"))


_KNOWN_NAME: Final = re.compile(r"sha-?\d|base\d|md[45]|utf-?(?:8|16)|argon2|pbkdf2|blake\d|oauth2|v\d", re.IGNORECASE)


def _is_possessive_password(candidate: Candidate) -> bool:
    """Accept a value after "password's", unless it names an algorithm such as SHA-256."""
    return _is_bare_password(candidate) and not _KNOWN_NAME.match(candidate.value)


def _is_named_value(candidate: Candidate) -> bool:
    """Accept the value of a name/value pair, as in container definitions."""
    password = re.search(_PASSWORD, candidate.lead, re.IGNORECASE)
    return _is_password(candidate) if password else _is_quoted_secret(candidate)


def _not_a_placeholder(candidate: Candidate) -> bool:
    if candidate.value[:1].isspace():  # the quote closed an earlier string
        return False
    return not is_placeholder(candidate.value) and not is_expression(candidate.value) and len(candidate.value) >= 3


_PHRASE_NAME: Final = (
    r"(?i:(?:seed|recovery|mnemonic|backup)[-_ ]?(?:phrase|words|seed)|mnemonics?|wallet[-_ ]seed|bip-?39|"
    r"cụm từ (?:khôi phục|hạt giống|ghi nhớ)|助记词|助記詞|恢复短语|种子短语)"
)
_BETWEEN_WORDS: Final = r"[\s\d.,;:|=*()\[\]{}\"'`-]"
_PHRASE_LEAD: Final = rf"(?:[^\n:=]{{0,30}}?(?:[:=]|\b(?:is|was|are)\b|là|是|为))?{_BETWEEN_WORDS}{{0,8}}"
_TWELVE_WORDS: Final = re.compile(rf"[a-z]{{3,8}}(?:{_BETWEEN_WORDS}{{1,8}}[a-z]{{3,8}}){{11}}\b")
_LONGEST_PHRASE: Final = 200
_MIN_DISTINCT_WORDS: Final = 8
"""Random words seldom recur. Those of examples do, such as eleven times "abandon"."""
_PROSE: Final = re.compile(r"\b(?:the|and|for|are|was|were|not|but|from|should|your|which|has|its|into|than)\b")
"""Words that occur in almost any twelve words of prose, but in no word list of wallets."""


def _is_seed_phrase(candidate: Candidate) -> bool:
    words = _TWELVE_WORDS.match(candidate.value + candidate.after(_LONGEST_PHRASE))
    if words is None or _PROSE.search(words[0]):
        return False
    return len(set(re.findall("[a-z]+", words[0]))) >= _MIN_DISTINCT_WORDS


CREDENTIALS: Final = (
    SecretRule("private key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----", _is_key_material),
    SecretRule("private key", r"PuTTY-User-Key-File-\d: ", lambda c: "Private-Lines:" in c.after(4000)),
    SecretRule("private key", r"\bb3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]{20}", lambda _: True),
    SecretRule("JSON web token", r"\beyJ[A-Za-z0-9_-]{8,}\.(?:eyJ)?[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)*", lambda c: not re.search(r"\.\.\.|example", c.value)),
    SecretRule("password in a URL", r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@\"'<>]*:([^\s/@\"'<>]+)@[\w\[.$-]", _is_url_password),
    SecretRule("password in a URL", r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@\"'<>]+:([^\s@\"'<>]+)@[\w\[.-]+[:/]", lambda c: not re.search(r"[/?]", c.value[:1]) and not re.match(r"\d{1,5}/", c.value) and _is_url_password(c)),
    SecretRule("token in a URL", r"\bhttps?://([A-Za-z0-9_-]{16,})@[\w.-]", lambda c: is_random(c.value) and not is_placeholder(c.value)),
    SecretRule("bearer token", r"(?i)\b(?:bearer|ssws)[ \t]+([A-Za-z0-9_.~+/=-]{16})", _is_bearer, _BASE64),
    SecretRule("basic credentials", r"(?i)\bbasic[ \t]+([A-Za-z0-9+/]{6})", _is_basic, "[A-Za-z0-9+/=]"),
    SecretRule("authorization header", r"(?i)\bauthorization[\"']?[ \t]{0,3}[:=,][ \t]{0,3}[\"']?(?:[a-z0-9-]{1,20}[ \t]+)?([A-Za-z0-9_.~+/=:-]{16})", _is_bearer, _BASE64),
    SecretRule("session cookie", r"(?i)\b(?:set-)?cookie[\"']?[ \t]{0,3}[:=,][ \t]{0,3}[\"']?(?:[\w.%-]+=[^;\s\"']*;[ \t]?)*?[\w.%-]+=([^;\s\"'<>]{16})", _is_token, r"[^;\s\"'<>]"),
    SecretRule("session id", rf"(?i)(?:{_SESSION})[\"'`\]]{{0,2}}{_GAP}[:=]{_GAP}[\"'`]?([A-Za-z0-9%._~+/=-]{{12}})", _is_token, "[A-Za-z0-9%._~+/=-]"),
    SecretRule("password", rf"(?i)(?:{_PASSWORD}){_SUFFIX}(?:{_EQUALS}|{_COPULA}){_GAP}{_QUOTED}", _is_password, _IN_QUOTES),
    SecretRule("password", rf"(?i)(?:{_PASSWORD}){_SUFFIX}(?:{_EQUALS}|{_COPULA}){_GAP}{_BARE}", _is_bare_password, _WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:{_PASSWORD})'s[ \t]{{1,3}}[\"'`]?{_BARE}", _is_possessive_password, _WITHOUT_QUOTES),
    SecretRule("secret", rf"(?i)(?:{_SECRET}){_SUFFIX}{_EQUALS}{_GAP}{_QUOTED}", _is_quoted_secret, _IN_QUOTES),
    SecretRule("secret", rf"(?i)(?:{_SECRET}){_SUFFIX}(?:{_EQUALS}|{_COPULA}){_GAP}[\"'`]?{_BARE}", _is_bare_secret, _WITHOUT_QUOTES),
    SecretRule("secret", rf"(?i)(?:{_SECRET})(?:[ \t:\"'`(]{{1,3}}[^\s\"'`:]{{1,12}}){{0,3}}?[ \t:\"'`(=]{{1,3}}([A-Za-z0-9_+/=.-]{{16}})", _is_token_in_prose, _BASE64),
    SecretRule("password", rf"(?i)\b(?:define|set\w*|put\w*|add\w*|append|header|with\w*|env|config|property)\([ \t]?[\"'][\w.-]*?(?:{_PASSWORD}|secret|api_?key|token)[\w-]*[\"'][ \t]?,[ \t]?[\"']([^\"'\n]{{3}})", lambda c: _is_password(c) and (bool(re.search(r"\d", c.value)) or is_random(c.value)), _IN_QUOTES),
    SecretRule("password", r"(?i)(?:password|passwd|secret|apikey|api_key)\([ \t]?[\"']([^\"'\n]{3})", lambda c: _is_password(c) and not re.fullmatch(r"[a-z_-]+|[A-Z0-9_]+", c.value), _IN_QUOTES),
    SecretRule("password", r"(?i)(?:password|passwd|pwd|secret|apikey|api-key|token)[\"']?>[ \t]?([^<\n]{3})", lambda c: _is_password(c) and c.after(2) == "</", r"[^<\n]"),
    SecretRule("secret", r"(?i)[?&;](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|key|auth|code)=([A-Za-z0-9%_.~+/=-]{16})", _is_token, "[A-Za-z0-9%_.~+/=-]"),
    SecretRule("secret", rf"(?i)name[\"']?[ \t]*[:=][ \t]*[\"']?[\w.-]*?(?:{_PASSWORD}|secret|api[-_]?key|token){_SUFFIX}[\"']?[,;]?\s+[\"']?value[\"']?[ \t]*[:=][ \t]*[\"']?([^\s\"',]{{4}})", _is_named_value, _ARGUMENT),
    SecretRule("password", r"(?i)\b(?:key|name|id)=[\"'][\w.:-]*?(?:password|passwd|pwd|secret|api[-_]?key|token)[\"'][ \t]{1,4}value=[\"']([^\"'\n]{3})", _is_password, _IN_QUOTES),
    SecretRule("password", r"(?i)\bidentified[ \t]+(?:with[ \t]+[\"'\w]+[ \t]+)?(?:by|as)[ \t]+(?:password[ \t]+)?[\"'`]?([^\s\"'`;]{3})", lambda c: _not_a_placeholder(c) and (c.lead[-1] in "\"'`" or bool(re.search(r"\d", c.value))), r"[^\s\"'`;]"),
    SecretRule("password", r"(?i)\bpassword(?:[ \t]+|[ \t]*(?:\(|=)|[ \t]+for[^=\n]{1,60}=)[ \t]*(?:password\()?'([^'\n]{3})", _not_a_placeholder, r"[^'\n]"),
    SecretRule("password", r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]*? -p['\"]?([^\s'\"-][^\s'\"]{2})", _not_a_placeholder, _ARGUMENT),
    SecretRule("password", rf"(?i)(?:(?:{_PASSWORD})[\"']?[ \t]{{1,3}}|密码|口令)[\"'`]?{_BARE}", _is_password_in_prose, _WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:{_ACCOUNT})(?:[^\n]{{0,40}}?[\w.-]{{2,40}})?[\"'`]?[ \t]?[/|:][ \t]?[\"'`]?([A-Za-z0-9]{{1,30}}[@#!$%^&*+~][^\s\"'`<>,;])", lambda c: _is_mixed(c.value), r"[^\s\"'`<>,;]"),
    SecretRule("password", r"\bjdbc:oracle:\w+:[\w.-]+/([^\s@/:]{3,80})@", _not_a_placeholder),
    SecretRule("password", r"\bsqlplus[ \t]+(?:-\w+[ \t]+)*[\w.]+/([^\s@/]{3,80})", _not_a_placeholder),
    SecretRule("password", r"(?:^|[\s'\"`(=])[\w.-]+:([^\s:@/'\"]{3,80})@(?:localhost\b|\d{1,3}(?:\.\d{1,3}){3}|[\w-]+(?:\.[\w-]+)*:\d{2,5})", _not_a_placeholder),
    SecretRule("password", r"\bhtpasswd[ \t]+-\w*b\w*[ \t]+\S+[ \t]+\S+[ \t]+['\"]?([^\s'\"]{3})", _not_a_placeholder, _ARGUMENT),
    SecretRule("password", r"\b(?:smbclient|rpcclient|smbmap|net)\b[^\n]*? -U[ \t]?['\"]?[^\s%]+%([^\s'\"]{3})", _not_a_placeholder, _ARGUMENT),
    SecretRule("password", r"\bsshpass[ \t]+-p[ \t]?['\"]?([^\s'\"]{3})", _not_a_placeholder, _ARGUMENT),
    SecretRule("password", r"\b(?:docker|podman|az|oc|helm|mongo\w*|psql|sqlcmd|bcp|mosquitto_\w+|ldap\w+|rabbitmqadmin)\b[^\n]*? (?:-p|-P|-w|--pw)[ \t=]{1,2}['\"]?([^\s'\"-][^\s'\"]{2})", lambda c: _not_a_placeholder(c) and not re.fullmatch(r"[\d.:/a-z]{1,12}(?::\d+)*(?:/tcp)?|\d+|[\w./-]*/[\w./-]*", c.value), _ARGUMENT),
    SecretRule("password", r"\bredis-cli\b[^\n]*? (?:-a|--pass)[ \t]+['\"]?([^\s'\"]{3})", _not_a_placeholder, _ARGUMENT),
    SecretRule("password", r"\bcurl\b[^\n]*? (?:-u|--user|--proxy-user)[ \t=]?['\"]?[^\s:'\"]+:([^\s'\"]{1,3})", _not_a_placeholder, _ARGUMENT),
    SecretRule("password", r"(?i)(?:^|[\s\"'`])--?(?:\w{1,20}-)?(?:password|passwd|passphrase|pass|pwd)(?:=|[ \t]+)['\"]?([^\s'\"<>\[\]()-][^\s'\"<>\[\]()]{3})", lambda c: _is_password(c) and bool(re.search(r"[^a-z-]", c.value)) and not re.match(r"\W+$", c.value), _ARGUMENT),
    SecretRule("secret", r"(?i)(?:^|[\s\"'`])--?(?:\w{1,20}-)?(?:token|secret|api-?key|auth-?token|access-?key)(?:=|[ \t]+)['\"]?([^\s'\"<>]{8})", _is_token, _ARGUMENT),
    SecretRule("password", r"(?i)-pass(?:in|out)?[ \t]+['\"]?pass:([^\s'\"]{3})", _not_a_placeholder, _ARGUMENT),
    SecretRule("password", r"(?i)\bmachine[ \t]+\S+\s+login[ \t]+\S+\s+password[ \t]+(\S{3})", _not_a_placeholder, r"\S"),
    SecretRule("password", r"(?i)\becho[ \t]+(?:-n[ \t]+)?['\"]?([^\s'\"|]{4,80})['\"]?[ \t]*\|[ \t]*(?:sudo[ \t]+-S|docker login|passwd|chpasswd|kinit|gh auth|cryptsetup)", _not_a_placeholder),
    SecretRule("password", r"(?i)\b(?:auth|basicauth|credentials|passwordcredentials|networkcredential|httpbasicauth|passwordauthentication|log_?in|sign_?in|authenticate)\b[ \t]*[=(:][ \t]*[(\[{]?[ \t]*['\"][^'\"\n]{1,80}['\"][ \t]*,[ \t]*['\"]([^'\"\n]{3})", _is_password, _IN_QUOTES),
    SecretRule("password", r"\b(?:getConnection|connect)\([^()\n]{1,120},[ \t]*[\"'][^\"'\n]{1,60}[\"'],[ \t]*[\"']([^\"'\n]{3})", lambda c: _is_password(c) and bool(re.search(r"[^a-z_]", c.value)), _IN_QUOTES),
    SecretRule("password", r"(?i)ConvertTo-SecureString[ \t]+(?:-String[ \t]+)?['\"]([^'\"\n$]{3})", _not_a_placeholder, _IN_QUOTES),
    SecretRule("password", r"(?im)\bnet[ \t]+user[ \t]+\S+[ \t]+([^\s/]{4,100})[ \t]*(?:/add|$)", _not_a_placeholder),
    SecretRule("password", r"(?m)^[\w.*-]+:(?:\d{2,5}|\*):[\w.*-]+:[\w.-]+:([^\s:]{3})", _not_a_placeholder, r"[^\s:]"),
    SecretRule("wallet's seed phrase", rf"{_PHRASE_NAME}{_PHRASE_LEAD}([a-z]{{3}})", _is_seed_phrase, f"(?:[a-z]|{_BETWEEN_WORDS})"),
)  # fmt: skip
