"""Personal data: e-mail and IP addresses, phone and account numbers, home folders."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from shared.experiences.secret_scanner.placeholders import is_placeholder
from shared.experiences.secret_scanner.rules import Candidate, SecretRule

_EXAMPLE_DOMAIN: Final = re.compile(
    r"(?:^|\.)(?:example\.(?:com|org|net|edu)|(?:your|my)-?(?:domain|company|organi[sz]ation|org|site|email|mail|website)\.(?:com|org|net|vn|cn)|"
    r"[a-z0-9-]+\.(?:test|example|invalid|localhost)|example\.[a-z.]{2,8})$",
    re.IGNORECASE,
)
_FILE_EXTENSIONS: Final = re.compile(
    r"png|jpg|jpeg|gif|svg|webp|ico|pdf|js|mjs|cjs|ts|tsx|jsx|css|scss|json|yaml|yml|toml|xml|html|htm|md|"
    r"txt|log|py|rb|go|java|kt|rs|php|c|h|cpp|cs|sql|lock|zip|gz|tgz|tar|whl|service|socket|timer|target|"
    r"mount|path|slice|scope|device|swap|finish",
    re.IGNORECASE,
)
_KEYWORDS: Final = frozenset(["this", "super", "return", "self", "break", "continue", "git"])
_SCHEME: Final = re.compile(r"(?<![\w+.-])(?!(?:mailto|xmpp|sips?):)[A-Za-z][A-Za-z0-9+.-]*://$", re.IGNORECASE)


def _is_mailbox(candidate: Candidate) -> bool:
    local, _, domain = candidate.value.rpartition("@")
    if local.casefold() in _KEYWORDS or _FILE_EXTENSIONS.fullmatch(domain.rpartition(".")[2]):
        return False
    before = candidate.before(200)
    if is_placeholder(local) and before.endswith(":"):  # a URL's password and host
        return False
    if _SCHEME.search(before) and candidate.after(1) != "@":  # a URL's user and host
        return False
    if is_placeholder(local) and re.search(r"your|\*|xxx|<", local, re.IGNORECASE):
        return False
    return not _EXAMPLE_DOMAIN.search(domain)


_VERSION: Final = re.compile(
    r"\b(?:ver|rev|sec)\.|\b(?:versions?|ver|rev|releases?|build|sections?|chapter|clause|firmware|driver|changelog|tag|"
    r"assembly\w*|nuget|sdk|package|oid|(?:fixed|introduced|added|removed|broken|available) (?:in|since)|"
    r"phiên bản|bản|mục|chương|trình điều khiển)\b|版本|驱动程序|驱动|固件|章节|第|版|[§]|"
    r"(?P<change>\b(?:upgrad\w+|downgrad\w+|bump\w*|roll\w*[ -]?back|revert\w*|updat\w+|nâng cấp|hạ cấp)\b|升级|降级|回退)",
    re.IGNORECASE,
)
_NETWORK: Final = re.compile(
    r"\b(?:ips?|ipv4|hosts?|servers?|addr\w*|dns|record|ping|ssh|scp|rsync|curl|wget|connect\w*|listen\w*|bind|gateway|router|"
    r"subnet|proxy|nameserver|node|client|agent|machine|instance|deploy\w*|reach\w*|resolv\w*|dial\w*|máy chủ|địa chỉ|máy)\b|"
    r"地址|服务器|主机|机器|://",
    re.IGNORECASE,
)
_ANOTHER_CLAUSE: Final = re.compile(r"[,，、。;；!！?？]|\.(?:\s|$)|\b(?:on|at|trên|tại)\b", re.IGNORECASE)
_EARLIER_VERSIONS: Final = re.compile(
    r"(\D*)((?:\d+(?:\.\d+)+\s*(?:to|and|or|và|đến|lên|sang|[,/→和与、~-]|->|=>|(?:升级|降级|回退)?[到至])\s*[vV]?)*)",
    re.IGNORECASE,
)
"""The text between the word and the version: words, then earlier versions."""
_LATER_VERSION: Final = re.compile(
    r"\s?(?:to|and|→|->|=>|lên|đến|(?:升级|降级|回退)?[到至和])\s?[vV]?\d+\.\d", re.IGNORECASE
)
_NAMED_AFTERWARDS: Final = re.compile(
    r"\s?(?:versions?\b|releases?\b|build\b|版|升级|降级|回退)|\s(?:of|for) (?:(?:the|our|this) )?(?:[\w.-]+ )?"
    r"(?:driver|agent|sdk|library|plugin|package|firmware|app|client|server|runtime|module|extension)\b",
    re.IGNORECASE,
)
_FROM: Final = re.compile(r"\b(?:from|từ)\b|从|自", re.IGNORECASE)
_TO: Final = re.compile(r"\b(?:to|lên|xuống|sang|về)\b|[到至为:=]", re.IGNORECASE)
_LONGEST_DISTANCE: Final = 40
"""The distance, in characters, from the word to the first version."""
_PRODUCT: Final = re.compile(
    r"(?:JDK|JRE|Java|SDK|CUDA|cuDNN|\.NET|Visual Studio|Android Studio|SQL Server|Oracle|Chrome|Chromium|Edge|WebView2|"
    r"Windows|Office|Teams|Outlook|Unity|Unreal|ImageMagick|Delphi|Zoom|Skype)[ /]$"
)
_DOCUMENTATION_NETWORKS: Final = tuple(
    ipaddress.ip_network(each)
    for each in ("0.0.0.0/8", "127.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/24",
                 "169.254.0.0/16", "255.0.0.0/8", "::/127", "2001:db8::/32", "3fff::/20", "fd00:ec2::254/128")
)  # fmt: skip


def _is_ipv4(candidate: Candidate) -> bool:
    try:
        address = ipaddress.IPv4Address(candidate.value)
    except ValueError:
        return False
    after = candidate.after(4)
    if re.match(r"\.?\d|\.[A-Za-z]|[A-Za-z_]", after) and not re.match(r"\.(?:nip|ssl|xip)", after):
        return False
    if any(address in network for network in _DOCUMENTATION_NETWORKS) or _is_range(address, after):
        return False
    before = (candidate.before(120) + candidate.lead).rpartition("\n")[2]
    if re.search(r"(?:\b[vVr]|[=~<>!^]=[ ]?|[~^][>]?[ ]?|[A-Za-z]/|[-_])$", before) and not before.endswith("ip-"):
        return False
    if address.is_global and _PRODUCT.search(before):
        return False
    if re.match(r":\d|/\d", after) or before.endswith("//"):
        return True
    return not _is_version(before, candidate.after(60))


def _is_version(before: str, after: str) -> bool:
    """Return True if the words around four numbers name a version."""
    words = next(reversed([*_VERSION.finditer(before)]), None)
    between = _EARLIER_VERSIONS.fullmatch(before, words.end()) if words else None
    if words is None or between is None or len(between[1]) > _LONGEST_DISTANCE:
        return _NAMED_AFTERWARDS.match(after) is not None
    if _NETWORK.search(between[1]) or _ANOTHER_CLAUSE.search(between[1]) or _NETWORK.match(after.lstrip()):
        return False
    if between[2] or _LATER_VERSION.match(after):
        return True
    is_source = _FROM.search(between[1]) is not None
    if words["change"]:
        return is_source or _TO.search(between[1]) is not None
    return not is_source


def _is_range(address: ipaddress.IPv4Address, after: str) -> bool:
    """Return True if it is a private network range such as 10.0.0.0/8."""
    prefix = re.match(r"/(\d{1,2})(?!\d)", after)
    if not prefix or int(prefix[1]) > 24:
        return False
    host = int(address) & ((1 << (32 - int(prefix[1]))) - 1)
    return host == 0 and not address.is_global


def _is_host_name(candidate: Candidate) -> bool:
    address = ipaddress.IPv4Address(candidate.value.replace("-", "."))
    return not any(address in network for network in _DOCUMENTATION_NETWORKS)


def _is_ipv6(candidate: Candidate) -> bool:
    try:
        address = ipaddress.IPv6Address(candidate.value)
    except ValueError:
        return False
    if candidate.value.endswith("::"):  # a network range
        return False
    return not any(address in network for network in _DOCUMENTATION_NETWORKS if network.version == 6)


_PHONE_WORD: Final = (
    r"(?:phone|tel|telephone|mobile|cell|call|fax|whatsapp|zalo|viber|hotline|sms|contact|my number|reach me|text me|điện thoại|đt|sđt|sdt|gọi|di động|liên hệ|"
    r"电话|手机|号码|联系|致电|拨打|微信)"
)
_VN: Final = r"(?:\(?\+?84\)?[ .-]?|0)(?:[35789]\d|2\d{1,2})(?:[ .-]?\d){7}"
_SEPARATED_VN: Final = r"0[235789]\d{1,2}[ .-]\d{3,4}[ .-]?\d{3,4}"


_FICTIONAL: Final = re.compile(r"(?:(?:00)?1)?\d{3}55501\d\d")
"""North American numbers that are reserved for fiction."""
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
    return not any(map(_FICTIONAL.fullmatch, digits)) and any(
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


_SSN: Final = re.compile(r"(?!000|666|9)\d{3}(?!00)\d{2}(?!0000)\d{4}")
_SSN_NAME: Final = (
    r"(?i)(?:(?:^|[^a-z])ssn|social[-_ ]?security(?:[-_ ]?(?:numbers?|num|no))?|số an sinh xã hội|"
    r"社会安全(?:号码?|碼|码)|社安号|社会保障号)"
)


def _is_social_security_number(candidate: Candidate) -> bool:
    goes_on = re.match(r"\w|[-.]\d", candidate.after(2))
    return not goes_on and _SSN.fullmatch(re.sub(r"\D", "", candidate.value)) is not None


_RESIDENT_WEIGHTS: Final = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_RESIDENT: Final = r"[1-9]\d{5}[ ]?(?:18|19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])[ ]?\d{3}[\dXx]"
_CITIZEN_NAME: Final = (
    r"(?:cccd|cmnd|cmt(?:nd)?\b|c[aă]n c[uư][oơớ]c(?: c[oô]ng d[aâ]n)?|ch[uứ]ng minh (?:nh[aâ]n d[aâ]n|th[uư])|"
    r"(?:s[oố]|m[aã]) (?:đ|d)[iị]nh danh|citizen[-_ ]?id|national[-_ ]?id|identity[-_ ]?(?:card|no|num)|\bid[-_ ]?(?:card|no|num)|"
    r"身份证)"
)
_CITIZEN: Final = r"0\d{2}[ .-]?\d{3}[ .-]?\d{3}[ .-]?\d{3}"
_LAST_PROVINCE: Final = 96


def _ends(candidate: Candidate) -> bool:
    return not re.match(r"\w|[.-]\w", candidate.after(2), re.ASCII)


def _is_resident_number(candidate: Candidate) -> bool:
    """Return True if the check digit of a Chinese resident identity number is right."""
    number = candidate.value.replace(" ", "").upper()
    total = sum(int(digit) * weight for digit, weight in zip(number, _RESIDENT_WEIGHTS, strict=False))
    return _ends(candidate) and number[-1] == "10X98765432"[total % 11]


def _is_citizen_number(candidate: Candidate) -> bool:
    """Return True if a number after the name of a Vietnamese identity card begins with a province's code."""
    number = re.sub(r"\D", "", candidate.value)
    return _ends(candidate) and 0 < int(number[:3]) <= _LAST_PROVINCE and len(set(number)) > 3


def _is_former_citizen_number(candidate: Candidate) -> bool:
    number = candidate.value
    return _ends(candidate) and len(set(number)) > 3 and number not in "0123456789"


_GENERIC_NAMES: Final = re.compile(
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
        and not _GENERIC_NAMES.match(name)
        and not re.search(r"[<>${}%*:\[]|^\d+$|^[0-9a-f-]{24,}$|\.{2,}|…", name)
    )


_NAME: Final = r"([^\s/\\\"'`;|&()=，。；：、）（」]{1,60})"

PERSONAL: Final = (
    SecretRule("e-mail address", r"[\p{Latin}0-9._%+-]+@(?:[\p{Latin}0-9-]+\.)+[A-Za-z]{2,24}", _is_mailbox),
    SecretRule("e-mail address", r"(?i)[a-z0-9._+-]+[ ]?[\[({<][ ]?at[ ]?[\])}>][ ]?(?:[a-z0-9-]+\.)+[a-z]{2,24}", lambda c: "example" not in c.value),
    SecretRule("e-mail address", r"(?i)[a-z0-9._+-]+[ ]?[\[({<][ ]?at[ ]?[\])}>][ ]?[a-z0-9-]+(?:[ ]?[\[({<][ ]?dot[ ]?[\])}>][ ]?[a-z0-9-]+)+", lambda c: "example" not in c.value),
    SecretRule("IP address", r"(?:^|[^\w.]|\b[vVr]|_)((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3})", _is_ipv4),
    SecretRule("IP address", r"\b(?:ip|ec2|host|node)-((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:-(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3})\b", _is_host_name),
    SecretRule("IP address", r"(?i)(?:^|[^\w:.])((?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2})(?::[0-9a-f]{0,4}){2,7})", _is_ipv6),
    SecretRule("phone number", r"(?:^|[^\w.+-])((?:\+84|\(\+84\)|0084)[ .-]?\(?0?\)?(?:[ .-]?\d){9,10})", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+/=-])(0[35789]\d(?:\d{7}|[ .-]\d{3}[ .-]?\d{4}|\d[ .-]\d{3}[ .-]?\d{3}|[ .-]\d{4}[ .-]?\d{3}|[ .-]\d{3}[ .-]\d{2}[ .-]\d{2}))", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+/-])(\(?02\d{1,2}\)?[ .-]\d{3,4}[ .-]?\d{4})", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+/-])((?:\(?(?:\+|00)?86\)?[ -]?)?1[3-9]\d(?:\d{8}|[ -]\d{4}[ -]\d{4})|84[35789]\d{8})", _is_bare_mobile),
    SecretRule("phone number", r"(?:^|[^\w.+/-])(\(?0(?:10|2\d|[3-9]\d{2})\)?[ -]\d{4}[ -]?\d{3,4})", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+/-])((?:\+?1[ .-]?)?(?:\([2-9]\d{2}\)[ ]?|[2-9]\d{2}[.-])\d{3}[ .-]\d{4})", _is_phone),
    SecretRule("phone number", r"(?:^|[^\w.+*/^)-]|tel:)(\+[1-9]\d{0,2}[ .-]?\(?\d{1,4}\)?(?:[ .-]?\d{2,4}){2,5})", lambda c: _is_phone(c) and len(re.sub(r"\D", "", c.value)) >= 9),
    SecretRule("phone number", rf"(?i){_PHONE_WORD}[^\d\n+(]{{0,16}}(\+?[(]?\d[\d .()-]{{6,18}}\d)", _is_phone),
    SecretRule("bank account number", r"(?:^|[^\w-])([A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?)", _is_iban),
    SecretRule("social security number", rf"{_SSN_NAME}[^\d\n]{{0,20}}(\d{{3}}[- ]\d{{2}}[- ]\d{{4}})", _is_social_security_number),
    SecretRule("social security number", rf"{_SSN_NAME}\W{{0,6}}(?:(?:is|was|là|是|为)\W{{0,3}})?(\d{{9}})", _is_social_security_number),
    SecretRule("identity number", rf"(?:^|[^\w.-])({_RESIDENT})", _is_resident_number),
    SecretRule("identity number", rf"(?i){_CITIZEN_NAME}[^\d\n]{{0,30}}({_CITIZEN})", _is_citizen_number),
    SecretRule("identity number", rf"(?i)(?:^|[^\w.-])({_CITIZEN})[^\d\n]{{0,20}}{_CITIZEN_NAME}", _is_citizen_number),
    SecretRule("identity number", r"(?i)(?:cmnd|cmt(?:nd)?\b|chứng minh nhân dân|chung minh nhan dan)[^\d\n]{0,30}(\d{9})", _is_former_citizen_number),
    SecretRule("payment card", r"(?:^|[^\w.-])(\d{4}(?:[ -]?\d{4}){2}[ -]?\d{1,7}|\d{4}[ -]?\d{6}[ -]?\d{4,5}|\d{13,19})", _is_card),
    SecretRule("home folder", rf"\\home\\{_NAME}", _is_person),
    SecretRule("home folder", rf"(?:^|[^\w.}}])(?:/(?:var|usr|export|mnt|nfs|private))?/home/{_NAME}", _is_person),
    SecretRule("home folder", rf"(?:^|[^\w.}}]|/mnt/[a-z]|\b[A-Za-z]:)/Users/{_NAME}", _is_person),
    SecretRule("home folder", r"(?i)\b[A-Z]:(?:\\\\?|/)(?:Users|Documents and Settings|Người dùng)(?:\\\\?|/)([^\s/\\\"'`;|&()=,，。]{1,60})", _is_person),
)  # fmt: skip
