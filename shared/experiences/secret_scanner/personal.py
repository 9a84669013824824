"""Personal data: phone, card and account numbers, home folders."""

from __future__ import annotations

import re
from typing import Final

from shared.experiences.secret_scanner.published_numbers import is_fictional_phone, is_test_card
from shared.experiences.secret_scanner.rules import Candidate, SecretRule

_PHONE_WORD: Final = (
    r"(?:phone|tel|telephone|mobile|cell|call|fax|whatsapp|zalo|viber|hotline|sms|contact|my number|reach me|text me|điện thoại|đt|sđt|sdt|gọi|di động|liên hệ|"
    r"电话|手机|号码|联系|致电|拨打|微信)"
)
_VN: Final = r"(?:\(?\+?84\)?[ .-]?|0)(?:[35789]\d|2\d{1,2})(?:[ .-]?\d){7}"
_SEPARATED_VN: Final = r"0[235789]\d{1,2}[ .-]\d{3,4}[ .-]?\d{3,4}"


_CONTINUES_OR_COUNTS: Final = re.compile(
    r"\w|\.\d|-\d|(?: ?(?:bytes|B|KB|MB|ms|ns|us|µs|tokens|rows|đồng|vnd|元)\b)", re.IGNORECASE
)


def _is_phone(candidate: Candidate) -> bool:
    """Return True if a number, or its beginning if others follow it, can be a phone number."""
    value = candidate.value
    if re.match(r"\d{4}-\d{2}-\d{2}", value):
        return False
    cuts = [value[: gap.start()] for gap in re.finditer(r"[ .-]+", value)]
    after = candidate.after(8)
    international = re.match(r"\+\d+[ -]", value) and not re.match(r"\w|\.\d|-\d", after)
    if international or not _CONTINUES_OR_COUNTS.match(after):
        cuts.append(value)
    digits = [re.sub(r"\D", "", cut) for cut in cuts]
    return not any(map(is_fictional_phone, digits)) and any(
        (9 if cut != value else 8) <= len(each) <= 15 and len(set(each)) > 2
        for cut, each in zip(cuts, digits, strict=True)
    )


def _is_bare_mobile(candidate: Candidate) -> bool:
    """Accept a run of digits, unless it is a round count or a multiple of a mebibyte."""
    number = int(re.sub(r"\D", "", candidate.value))
    return _is_phone(candidate) and number % 2**20 != 0 and number % 10**5 != 0


_CARD: Final = re.compile(r"^(?:4\d{15}|4\d{12}|4\d{18}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|2720\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|"
                    r"6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|9704\d{12}(?:\d{3})?|220[0-4]\d{12})$")  # fmt: skip


def _is_card(candidate: Candidate) -> bool:
    digits = re.sub(r"\D", "", candidate.value)
    if not _CARD.match(digits) or re.match(r"[\w]|[.-]\w", candidate.after(2)):
        return False
    if len(digits) in (13, 14, 18, 19) and digits == candidate.value and not digits.startswith(("62", "9704")):
        return False
    if is_test_card(digits):
        return False
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_IBAN_LENGTHS: Final = {
    country: int(length)
    for country, length in re.findall(
        r"([A-Z]{2})(\d\d)",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 "
        "FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 "
        "LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 "
        "SI19 SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20",
    )
}


def _is_iban(candidate: Candidate) -> bool:
    """Return True if the groups form an account number of the country's length with valid check digits."""
    length = _IBAN_LENGTHS.get(candidate.value[:2], 0)
    account = ""
    groups = re.split("[ -]", candidate.value)
    while groups and len(account) < length:
        account += groups.pop(0)
    goes_on = not groups and re.match(r"\w", candidate.after(1))
    return (
        0 < len(account) == length
        and not goes_on
        and int("".join(str(int(each, 36)) for each in account[4:] + account[:4])) % 97 == 1
    )


GENERIC_NAMES: Final = re.compile(
    r"^(?:users?\d*|user[-_]?name|you|your[-_ ]?(?:user[-_]?)?(?:name|user|id)?|yourname|me|name|my[-_]?(?:name|user|username)?|login|account|"
    r"someone|somebody|anyone|person|example|foo|bar|baz|test(?:er|user)?|guest|admin|administrator|root|public|shared|default|all users|"
    r"ubuntu|debian|centos|fedora|ec2-user|runner|runneradmin|node|vscode|app|appuser|circleci|jovyan|git|deploy|deployer|www|www-data|docker|"
    r"vagrant|pi|coder|gitpod|codespace|linuxbrew|travis|jenkins|build|builder|dev|developer|devuser|opc|azureuser|vsts|vmuser|"
    r"containeruser|nonroot|nobody|nginx|postgres|mysql|oracle|hadoop|spark|airflow|zeppelin|sandbox|project|work|workspace|steam|deck|"
    r"index|dashboard|about|settings|page|feed|home|main|data|config|search|news|profile|products?|blog|contact|help|"
    r"x+|\.+|\*+|tên\w*|ten[-_]?\w*|người\w*|用户\w*|你的\w*|您的\w*|名字|某人)(?:\.html?|\.tsx?|\.jsx?|\.php|\.vue)?$",
    re.IGNORECASE,
)


def _is_person(candidate: Candidate) -> bool:
    name = candidate.value.rstrip(".,:;!?)。，、")
    return (
        bool(name)
        and not GENERIC_NAMES.match(name)
        and not re.search(r"[<>${}%*:\[]|^\d+$|^[0-9a-f-]{24,}$|\.{2,}|…", name)
    )


_NAME: Final = r"([^\s/\\\"'`;|&()=，。；：、）（」]{1,60})"


PERSONAL: Final = (
    SecretRule("phone number", r"(?:^|[^\w.+-])((?:\+84|\(\+84\)|0084)[ .-]?\(?0?\)?(?:[ .-]?\d){9,10})", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+/=-])(0[35789]\d(?:\d{7}|[ .-]\d{3}[ .-]?\d{4}|\d[ .-]\d{3}[ .-]?\d{3}|[ .-]\d{4}[ .-]?\d{3}|[ .-]\d{3}[ .-]\d{2}[ .-]\d{2}))", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+/-])(\(?02\d{1,2}\)?[ .-]\d{3,4}[ .-]?\d{4})", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+/-])((?:\(?(?:\+|00)?86\)?[ -]?)?1[3-9]\d(?:\d{8}|[ -]\d{4}[ -]\d{4})|84[35789]\d{8})", _is_bare_mobile),
    SecretRule("phone number", r"(?:^|[^\w.+/-])(\(?0(?:10|2\d|[3-9]\d{2})\)?[ -]\d{4}[ -]?\d{3,4})", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+/-])((?:\+?1[ .-]?)?(?:\([2-9]\d{2}\)[ ]?|[2-9]\d{2}[.-])\d{3}[ .-]\d{4})", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+*/^)-]|tel:)(\+[1-9]\d{0,2}[ .-]?\(?\d{1,4}\)?(?:[ .-]?\d{2,4}){2,5})", lambda c: _is_phone(c) and len(re.sub(r"\D", "", c.value)) >= 9),
    SecretRule("phone number", rf"(?i){_PHONE_WORD}[^\d\n+(]{{0,16}}(\+?[(]?\d[\d .()-]{{6,18}}\d)", _is_phone),
    SecretRule("bank account number", r"(?:^|[^\w-])([A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?)", _is_iban),
    SecretRule("payment card", r"(?:^|[^\w.-])(\d{4}(?:[ -]?\d{4}){2}[ -]?\d{1,7}|\d{4}[ -]?\d{6}[ -]?\d{4,5}|\d{13,19})", _is_card),
    SecretRule("home folder", rf"\\home\\{_NAME}", _is_person),
    SecretRule("home folder", rf"(?:^|[^\w.}}])(?:/(?:var|usr|export|mnt|nfs|private))?/home/{_NAME}", _is_person),
    SecretRule("home folder", rf"(?:^|[^\w.}}]|/mnt/[a-z]|\b[A-Za-z]:)/Users/{_NAME}", _is_person),
    SecretRule("home folder", r"(?i)\b[A-Z]:(?:\\\\?|/)(?:Users|Documents and Settings|Người dùng)(?:\\\\?|/)([^\s/\\\"'`;|&()=,，。]{1,60})", _is_person),
)  # fmt: skip
