"""Passwords and tokens in sentences, in English, Vietnamese and Chinese."""

from __future__ import annotations

import re
from typing import Final

from shared.experiences.secret_scanner.names import ACCOUNT, BARE, BASE64, PASSWORD, SECRET, WITHOUT_QUOTES
from shared.experiences.secret_scanner.placeholders import changes
from shared.experiences.secret_scanner.rules import Candidate, SecretRule
from shared.experiences.secret_scanner.values import (
    SHORTEST_PASSPHRASE,
    before_other_script,
    is_bare_password,
    is_mixed,
    is_passphrase,
    is_password,
    is_token,
)


def _is_token_in_prose(candidate: Candidate) -> bool:
    """Accept a random token in a sentence, unless the sentence calls it a hash or an id."""
    named = re.search(
        r"commit|hash|sha|md5|checksum|digest|etag|revision|uuid|trace|span|request", candidate.lead, re.IGNORECASE
    )
    return not named and len(candidate.value) >= 12 and is_token(candidate)


_VERB: Final = re.compile(
    r"(?:to|will|must|not|can|should|could|would|you|we|they|tests?|checks?)[ \t]+$", re.IGNORECASE
)


def _is_password_in_prose(candidate: Candidate) -> bool:
    """Accept a value next to the word "password" without an assignment, if it cannot be a word."""
    value = before_other_script(candidate.value)
    known = re.search(r"sha\d|base64|pbkdf2|md5|bcrypt|argon2|oauth2|utf-?8|v\d|https?:|[/\\]", value, re.IGNORECASE)
    is_verb = re.match(r"pass[ \t]", candidate.lead, re.IGNORECASE) and _VERB.search(candidate.before(20))
    if known or is_verb or not is_password(candidate) or len(value) < 6:
        return False
    return changes(value) >= 2 or is_mixed(value) or is_passphrase(value)


def _is_quoted_phrase(candidate: Candidate) -> bool:
    """Accept quoted words after the name of a passphrase, if a number is among them."""
    return re.search(r"\d\d", candidate.value) is not None and is_password(candidate) and is_passphrase(candidate.value)


def _is_mixed_login(candidate: Candidate) -> bool:
    """Accept a mixed value after an account's name, unless both are in a line of base64."""
    unspaced = re.search(r"\s", candidate.lead) is None
    in_base64 = unspaced and (candidate.before(1) in ("+", "/") or re.fullmatch(r"[\w+/=]{24,}", candidate.value))
    return not in_base64 and is_mixed(candidate.value)


def _is_named_login(candidate: Candidate) -> bool:
    """Accept a login only if an account has a name: "root / …", not "account / …"."""
    unnamed = re.fullmatch(_GROUP, candidate.lead.strip("\"'` \t/|"), re.IGNORECASE)
    return unnamed is None and _is_login(candidate)


def _is_login(candidate: Candidate) -> bool:
    """Accept the value after an account's name, if it is a passphrase or mixes words, numbers and punctuation."""
    value = before_other_script(candidate.value)
    return is_password(candidate) and (is_passphrase(value) or is_mixed(value))


def _is_strong_login(candidate: Candidate) -> bool:
    """Accept the value after a login's name, if words, numbers and punctuation are joined."""
    value = before_other_script(candidate.value)
    joined = is_passphrase(value) and bool(re.search("[A-Z]", value) and re.search(r"[^\w.]", value))
    return is_password(candidate) and (is_mixed(value) or joined)


def _is_vietnamese(candidate: Candidate) -> bool:
    """Accept words with a number after the name of a password and words of the sentence."""
    return candidate.lead.isascii() is False and _is_login(candidate) and _TECHNICAL_WORD.match(candidate.value) is None


def _is_network_passphrase(candidate: Candidate) -> bool:
    """Accept what follows the name of a network, if Wi-Fi accepts its length and words and numbers are joined."""
    return len(candidate.value) >= SHORTEST_PASSPHRASE and _is_login(candidate)


_TECHNICAL_WORD: Final = re.compile(r"(?:wpa|sha|md|base|bcrypt|argon|oauth|esp|http|utf|ipv)\d", re.IGNORECASE)


def _is_quoted_login(candidate: Candidate) -> bool:
    """Accept a whole quotation after a quoted account, if it can be no name."""
    value = candidate.value
    return (
        candidate.after(1) in ('"', "'", "`") and is_password(candidate) and (is_passphrase(value) or is_mixed(value))
    )


_GROUP: Final = r"accounts?|users?|username|log[- ]?in|credentials?|tài khoản|tai khoan|tk|đăng nhập|dang nhap|账号|帐号|账户|用户名?|登录"
_PAIR: Final = (
    r"(?:credentials?|creds|log[- ]?ins?|tài khoản|tai khoan|账号|帐号|账户|登录信息|帐密|账密|帳密|"
    r"(?:账号|帐号|帳號|用户名|用户)(?:和|与|及|/|、)?密码|(?:tk|tài khoản)[ \t]?/[ \t]?(?:mk|mật khẩu)|"
    r"(?:user(?:name)?|login|id)[ \t]?[/|&+][ \t]?(?:password|passwd|pass|pwd|pw))"
)
"""A name for an account and its password together."""
_PAIR_COPULA: Final = r"(?:[ \t](?:for|of|to)[ \t][\w -]{1,30}?)?(?:[ \t]{0,3}(?:[:=]|[ \t](?:(?:are|is|was|were)\b|(?:của tôi )?là):?|是|为))?[ \t]{0,3}[\"'`(]?"


_KNOWN_NAME: Final = re.compile(r"sha-?\d|base\d|md[45]|utf-?(?:8|16)|argon2|pbkdf2|blake\d|oauth2|v\d", re.IGNORECASE)


def _is_possessive_password(candidate: Candidate) -> bool:
    """Accept a value after "password's", unless it names an algorithm such as SHA-256."""
    return is_bare_password(candidate) and not _KNOWN_NAME.match(candidate.value)


PROSE: Final = (
    SecretRule("password", rf"(?i)(?:{PASSWORD})'s[ \t]{{1,3}}[\"'`]?{BARE}", _is_possessive_password, WITHOUT_QUOTES),
    SecretRule("secret", rf"(?i)(?:{SECRET})(?:[ \t:\"'`(]{{1,3}}[^\s\"'`:]{{1,12}}){{0,3}}?[ \t:\"'`(=]{{1,3}}([A-Za-z0-9_+/=.-]{{16}})", _is_token_in_prose, BASE64),
    SecretRule("password", rf"(?i)(?:(?:{PASSWORD})[\"']?[ \t]{{1,3}}|密码|口令)[\"'`]?{BARE}", _is_password_in_prose, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:{ACCOUNT})(?:[^\n]{{0,40}}?[\w.-]{{2,40}})?[\"'`]?[ \t]?[/|:][ \t]?[\"'`]?([A-Za-z0-9]{{1,30}}[@#!$%^&*+~][^\s\"'`<>,;])", _is_mixed_login, r"[^\s\"'`<>,;]"),
    SecretRule("password", rf"(?i)\b(?:{_PAIR}){_PAIR_COPULA}[\w.@-]{{2,40}}(?::[ \t]?|,[ \t]|[ \t][/|,][ \t])[\"'`]?{BARE}", _is_login, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:{_PAIR}){_PAIR_COPULA}[a-z][\w.-]{{1,30}}(?:[ \t]{{1,3}}|[/,，、:])[\"'`]?{BARE}", lambda c: not c.lead.isascii() and _is_login(c), WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:{ACCOUNT})(?:[^\n]{{0,40}}?[\w.-]{{2,40}})?[\"'`]?[ \t][/|][ \t][\"'`]?{BARE}", _is_named_login, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:{ACCOUNT}|\blog(?:ged)?[ -]?in[ \t](?:as|with)|\b(?:try|use|using|enter|type|dùng|nhập)\b|输入|使用)[^\n\"'`]{{0,20}}[\"'`][\w.@-]{{2,40}}[\"'`][ \t]{{0,2}}(?:with|and|as|or|/|,|và|和|与)(?:[ \t](?:the[ \t])?pass\w*)?[ \t]{{0,2}}[\"'`]{BARE}", _is_quoted_login, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:\bcreds|\bcredentials(?:[ \t](?:are|is|were))?|\b(?:log(?:ged)?|sign(?:ed)?)[ -]?in[ \t](?:as|with|using)|đăng nhập (?:bằng|với))[ \t:]{{1,3}}(?:(?:are|is)[ \t])?[\w.-]{{2,30}}/{BARE}", _is_login, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)\b(?:user(?:name)?|usr|login|id)[ \t]?[/|&+][ \t]?(?:password|passwd|pass|pwd|pw){_PAIR_COPULA}[\w.@-]{{2,40}}/{BARE}", _is_login, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:\blog[ -]?in|đăng nhập)[ \t](?:root|admin|administrator|pi|ubuntu|user)/{BARE}", _is_login, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)\b(?:(?:log(?:ged|ging)?|sign(?:ed|ing)?)[ -]?in|authenticated?)[ \t](?:as|with|using)[ \t][\w.@-]{{2,40}}[ \t](?:and|with)[ \t]{BARE}", _is_strong_login, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)\bu(?:ser|sr)?[ \t]?[:=][ \t]?[\w.@-]{{2,40}}[,;/]?[ \t]{{1,3}}p(?:w|wd|ass)?[ \t]?[:=][ \t]?{BARE}", _is_login, WITHOUT_QUOTES),
    SecretRule("password", r"(?i)(?:mật khẩu|mat khau|\bmk|\bpass)(?:[ \t][^\s\d:=,.;\"'`/]{1,12}){1,5}[ \t][\"'`]?([A-Za-z]{3,20}[0-9])", _is_vietnamese, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)\b(?:(?:wi-?fi|wlan|hotspot)[ \t]?[:=]|ssid[ \t:=])[ \t]{{0,3}}[\"'`]?[\w.-]{{1,32}}[\"'`]?(?:,[ \t]|[ \t][/|][ \t]|\s{{1,8}})(?:(?:key|pass\w*|pw|psk|password)[ \t]?[:=]?[ \t]?)?[\"'`]?{BARE}", _is_network_passphrase, WITHOUT_QUOTES),
    SecretRule("password", rf"(?i)(?:(?:密码|口令|暗号)[ \t]?\(|(?:{PASSWORD})(?:[ \t][(\[]|[ \t]?[「『【《]))[ \t]?[\"'`]?{BARE}", _is_login, WITHOUT_QUOTES),
    SecretRule("password", r"(?i)\b(?:pass[- ]?(?:phrase|word|code)|mật khẩu)[ \t]{1,3}[\"'`]([^\"'`\n]{6,60})[\"'`]", _is_quoted_phrase),
    SecretRule("password", r"(?i)(?:^|[\s\"'`])([^\s\"'`,;:()/=]{6,40})[\"'`]?[ \t](?:as|(?:as|is|was)[ \t](?:the|my|our|his|her|its|their))[ \t](?:[\w-]{2,12}[ \t])?(?:password|passphrase|passcode)\b", _is_login),
    SecretRule("password", r"(?:^|[\s\"'`])([^\s\"'`,;:()/=]{6,40})[\"'`]?[ \t]?(?:là mật khẩu|是(?:我的|默认|登录)?密码)", _is_login),
)  # fmt: skip
