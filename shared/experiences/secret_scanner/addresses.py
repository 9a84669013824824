"""E-mail and IP addresses, apart from those that identify no person."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from shared.experiences.secret_scanner.personal import GENERIC_NAMES
from shared.experiences.secret_scanner.placeholders import is_placeholder
from shared.experiences.secret_scanner.rules import Candidate, SecretRule
from shared.experiences.secret_scanner.version_numbers import is_version

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
_OWN_NETWORK: Final = re.compile(r"\.(?:local|lan|home|internal|intranet|localdomain|home\.arpa)$", re.IGNORECASE)
"""Names that no public server resolves."""
_KEYWORDS: Final = frozenset(["this", "super", "return", "self", "break", "continue", "git"])
_SCHEME: Final = re.compile(r"(?<![\w+.-])(?!(?:mailto|xmpp|sips?):)[A-Za-z][A-Za-z0-9+.-]*://$", re.IGNORECASE)


_SENDER_WITHOUT_MAILBOX: Final = re.compile(
    r"(?:.*[-._+])?(?:no|not|do[-_.]?not|dont)[-_.]?reply(?:[-._+].*)?", re.IGNORECASE
)
_SENDER_DOMAIN: Final = re.compile(r"(?:^|\.)no-?reply\.", re.IGNORECASE)


def _is_mailbox(candidate: Candidate) -> bool:
    local, _, domain = candidate.value.rpartition("@")
    if local.casefold() in _KEYWORDS or _FILE_EXTENSIONS.fullmatch(domain.rpartition(".")[2]):
        return False
    before = candidate.before(200)
    if is_placeholder(local) and before.endswith(":"):  # a URL's password and host
        return False
    if _SCHEME.search(before) and candidate.after(1) != "@":  # a URL's user and host
        return False
    if _OWN_NETWORK.search(domain) and GENERIC_NAMES.match(local):
        return False
    if _SENDER_WITHOUT_MAILBOX.fullmatch(local) or _SENDER_DOMAIN.search(domain):
        return False
    if is_placeholder(local) and re.search(r"your|\*|xxx|<", local, re.IGNORECASE):
        return False
    return not _EXAMPLE_DOMAIN.search(domain)


_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_RESOLVERS: Final = frozenset(
    re.findall(
        r"\S+",
        """
    1.0.0.1 1.0.0.2 1.0.0.3 1.1.1.1 1.1.1.2 1.1.1.3 4.2.2.1 4.2.2.2 4.2.2.3 4.2.2.4 8.8.4.4 8.8.8.8 8.20.247.20 8.26.56.26
    9.9.9.9 9.9.9.10 9.9.9.11 9.9.9.12 45.11.45.11 64.6.64.6 64.6.65.6 74.82.42.42 76.76.2.0 76.76.10.0 77.88.8.1 77.88.8.8
    84.200.69.80 84.200.70.40 94.140.14.14 94.140.14.15 94.140.14.140 94.140.15.15 94.140.15.16 101.101.101.101
    149.112.112.10 149.112.112.11 149.112.112.112 156.154.70.1 156.154.71.1 168.63.129.16 185.222.222.222
    185.228.168.9 185.228.168.10 185.228.168.168 185.228.169.9 185.228.169.11 185.228.169.168 208.67.220.123 208.67.220.220
    208.67.222.123 208.67.222.222 209.244.0.3 209.244.0.4
    1.2.4.8 1.12.12.12 101.226.4.6 114.114.114.110 114.114.114.114 114.114.114.119 114.114.115.110 114.114.115.115
    114.114.115.119 117.50.10.10 117.50.11.11 119.28.28.28 119.29.29.29 120.53.53.53 180.76.76.76 180.184.1.1 180.184.2.2
    182.254.116.116 210.2.4.8 218.30.118.6 223.5.5.5 223.6.6.6
    168.95.1.1 168.95.192.1 168.126.63.1 168.126.63.2 203.113.131.1 203.113.131.2 203.162.4.190 203.162.4.191
    210.245.24.20 210.245.24.22
    2001:4860:4860::8888 2001:4860:4860::8844 2001:4860:4860::64 2001:4860:4860::6464
    2606:4700:4700::1111 2606:4700:4700::1001 2606:4700:4700::1112 2606:4700:4700::1002 2606:4700:4700::1113
    2606:4700:4700::1003 2606:4700:4700::64 2606:4700:4700::6400 2620:fe::fe 2620:fe::9 2620:fe::10 2620:fe::fe:10
    2620:fe::11 2620:fe::fe:11 2620:119:35::35 2620:119:53::53 2620:0:ccc::2 2620:0:ccd::2 2400:3200::1 2400:3200:baba::1
    2402:4e00:: 2402:4e00:1:: 2400:da00::6666 2a10:50c0::ad1:ff 2a10:50c0::ad2:ff 2a02:6b8::feed:ff 2001:de4::101
    2001:de4::102 240c::6666 240c::6644 2001:dc7:1000::1
        """,
    )
)
"""Public resolvers of names, and the address that is the platform's own in every Azure network."""
_RELAYS: Final = ipaddress.ip_network("192.88.99.0/24")


def _is_anonymous(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return True for private, local, shared, multicast, reserved and documentation addresses, and for resolvers."""
    return (
        not address.is_global
        or address.is_multicast
        or address.is_reserved
        or str(address) in _RESOLVERS
        or address in _RELAYS
    )


def _is_ipv4(candidate: Candidate) -> bool:
    try:
        address = ipaddress.IPv4Address(candidate.value)
    except ValueError:
        return False
    after = candidate.after(4)
    if re.match(r"\.?\d|\.[A-Za-z]|[A-Za-z_]", after) and not re.match(r"\.(?:nip|ssl|xip)", after):
        return False
    if _is_anonymous(address) or _is_network(candidate.value, after):
        return False
    before = (candidate.before(120) + candidate.lead).rpartition("\n")[2]
    if re.search(r"(?:\b[vVr]|[=~<>!^]=[ ]?|[~^][>]?[ ]?|[A-Za-z]/|[-_])$", before) and not before.endswith("ip-"):
        return False
    if re.match(r":\d|/\d", after) or before.endswith("//"):
        return True
    return not is_version(before, candidate.after(60))


def _is_network(value: str, after: str) -> bool:
    """Return True if it ends in .0 and names no range of addresses: a version, seldom a host."""
    return value.endswith(".0") and not re.match(r"[/:]\d", after)


def _is_host_name(candidate: Candidate) -> bool:
    address = ipaddress.IPv4Address(candidate.value.replace("-", "."))
    return not _is_anonymous(address)


def _is_ipv6(candidate: Candidate) -> bool:
    try:
        address = ipaddress.IPv6Address(candidate.value)
    except ValueError:
        return False
    if candidate.value.endswith("::"):  # a network range
        return False
    return not _is_anonymous(address)


def _is_spelled_mailbox(candidate: Candidate) -> bool:
    return "example" not in candidate.value and not _SENDER_WITHOUT_MAILBOX.match(
        re.split(r"[ \[({<]", candidate.value)[0]
    )


ADDRESSES: Final = (
    SecretRule("e-mail address", r"[\p{Latin}0-9._%+-]+@(?:[\p{Latin}0-9-]+\.)+[A-Za-z]{2,24}", _is_mailbox),
    SecretRule("e-mail address", r"(?i)[a-z0-9._+-]+[ ]?[\[({<][ ]?at[ ]?[\])}>][ ]?(?:[a-z0-9-]+\.)+[a-z]{2,24}", _is_spelled_mailbox),
    SecretRule("e-mail address", r"(?i)[a-z0-9._+-]+[ ]?[\[({<][ ]?at[ ]?[\])}>][ ]?[a-z0-9-]+(?:[ ]?[\[({<][ ]?dot[ ]?[\])}>][ ]?[a-z0-9-]+)+", _is_spelled_mailbox),
    SecretRule("IP address", rf"(?:^|[^\w.]|\b[vVr]|_)({_OCTET}(?:\.{_OCTET}){{3}})", _is_ipv4),
    SecretRule("IP address", rf"\b(?:ip|ec2|host|node)-({_OCTET}(?:-{_OCTET}){{3}})\b", _is_host_name),
    SecretRule("IP address", r"(?i)(?:^|[^\w:.])([23][0-9a-f]{3}(?::[0-9a-f]{0,4}){2,7})", _is_ipv6),
)  # fmt: skip
