"""Passwords and keys in the idioms of firmware: Wi-Fi and MQTT calls, macros, network tools, key bytes."""

from __future__ import annotations

import itertools
import re
from typing import Final

from shared.experiences.secret_scanner.names import ARGUMENT, IN_QUOTES, PASSWORD, QUOTED, SECRET, SUFFIX
from shared.experiences.secret_scanner.rules import Candidate, SecretRule
from shared.experiences.secret_scanner.values import (
    SHORTEST_PASSPHRASE,
    is_literal,
    is_passphrase,
    is_password,
    is_quoted_secret,
)

_ONE: Final = r"""[ \t]?(?:\([\w *]{1,20}\)[ \t]?)?(?:[A-Z]{0,2}\(?"[^"\n]{0,64}"\)?|[bf]?'[^'\n]{0,64}'|[^,()"'\n]{0,64}(?:\([^()"'\n]{0,30}\))?)[ \t]?"""
"""An argument: a literal or a name."""
_QUOTED_ONE: Final = r"""[ \t]?["'][^"'\n]{1,64}["'][ \t]?"""
_VALUE: Final = r"""[ \t]?(?:\w{1,12}[ \t]?=[ \t]?)?(?:[A-Z]{1,2}\(|\([\w \t*]{1,20}\)[ \t]?)?[bfL]?["']([^"'\n]{3})"""
_STATION: Final = (
    r"(?:\b(?:\w*(?:wi-?fi|wlan)\w*|sta(?:tion)?(?:_if)?|ap(?:_if)?|nic|radio|wl|wm|(?:sta|ap)_if\))[ \t]*(?:\.|->)[ \t]*"
    r"(?:begin|begin_?ap|soft_?ap|add_?ap|connect|connect_?ap|start_?ap|auto_?connect|start_?config_?portal)|"
    r"\b\w*(?:connect|set|begin|join|start|init|add|save)\w*(?:wi-?fi|wlan)\w*|\b\w*(?:wifi|wlan)_?(?:connect|setup|begin|join|start|init)\w*|\bdo_?connect)"
)
_LOGIN: Final = r"(?:username_pw_set|set_?credentials|set_?login|set_?authorization|set_?auth|elegantota\.begin|httpupdat\w+\.setup|set_?user\w{0,8}pass\w*)"

_KEY_NAME: Final = r"(?:\b\w*(?:key|psk|secret)\w{0,16}|\bid\.json\b[^\[\n]{0,30})"
_OTHER_KEY: Final = re.compile(
    r"pub|map|code|board|matrix|pad|frame|press|hid|scan|event|hash|keyword|keys_?count|monkey|hotkey|donkey|keys\b|label|name",
    re.IGNORECASE,
)
_BYTE: Final = r"(?:0x[0-9A-Fa-f]{1,2}|[0-9]{1,3})"
_BYTES: Final = re.compile(rf"(?:{_BYTE}[uU]?[,\s]{{1,12}}){{15}}{_BYTE}\b|(?:\\x[0-9A-Fa-f]{{2}}){{16}}")
_LONGEST_LIST: Final = 400
_PUBLISHED_KEYS: Final = ("0123456789abcdef", "2b7e151628aed2a6", "603deb1015ca71be", "8e73b0f7da0e6452")
"""The keys of the AES standard's test vectors, and digits that are counted out."""


def _is_key(candidate: Candidate) -> bool:
    """Return True if a list of 16 bytes or more, which are neither counted out nor published, has the name of a key."""
    if _OTHER_KEY.search(candidate.lead):
        return False
    numbers = _BYTES.match(candidate.value + candidate.after(_LONGEST_LIST))
    if numbers is None:
        return False
    parts = re.findall(r"0x[0-9A-Fa-f]+|(?<=\\x)[0-9A-Fa-f]{2}|\b\d+", numbers[0])
    values = [int(part, 10 if part.isdigit() and "\\x" not in numbers[0] else 16) for part in parts]
    steps = {(other - one) % 256 for one, other in itertools.pairwise(values)}
    return len(steps) > 4 and not "".join(f"{value:02x}" for value in values).startswith(_PUBLISHED_KEYS)


def _is_hexadecimal_key(candidate: Candidate) -> bool:
    value = re.sub("[ :]", "", candidate.value).lower()
    return len(set(value)) > 6 and not _OTHER_KEY.search(candidate.lead) and not value.startswith(_PUBLISHED_KEYS)


def _is_digit_code(candidate: Candidate) -> bool:
    """Accept digits that are neither counted out nor a few ones."""
    steps = {int(other) - int(one) for one, other in itertools.pairwise(candidate.value)}
    return len(steps) > 1 and len(set(candidate.value)) > 2


def _is_passphrase_of_network(candidate: Candidate) -> bool:
    """Accept the second of two quoted texts, if Wi-Fi accepts its length and words and numbers are joined."""
    return len(candidate.value) >= SHORTEST_PASSPHRASE and is_password(candidate) and is_passphrase(candidate.value)


def _is_argument(candidate: Candidate) -> bool:
    """Accept a bare argument unless it is a lower-case word, so that sentences about the command pass."""
    return is_literal(candidate) and re.fullmatch(r"[a-z]+[.,:;]?|-.*", candidate.value) is None


FIRMWARE: Final = (
    SecretRule("password", rf"(?i){_STATION}[ \t]*\({_ONE},{_VALUE}", is_password, IN_QUOTES),
    SecretRule("password", rf"\bBlynk\.(?:begin|connectWiFi)[ \t]*\((?:{_ONE},){{1,2}}{_VALUE}", is_password, IN_QUOTES),
    SecretRule("password", rf"(?i){_LOGIN}[ \t]*\((?:{_ONE},){{1,4}}{_VALUE}[^\"'\n]{{0,120}}[\"'][ \t]*\)", is_password, IN_QUOTES),
    SecretRule("password", rf"(?i)\b(?:str\w*cpy\w*|memcpy|sn?printf)[ \t]*\([^,\n]{{0,80}}pass\w*[^,\n]{{0,12}},{_VALUE}", is_password, IN_QUOTES),
    SecretRule("password", rf"(?i)#[ \t]*define[ \t]+\w*?(?:{PASSWORD}|psk){SUFFIX}[ \t]+\(?{QUOTED}", is_password, IN_QUOTES),
    SecretRule("secret", rf"(?i)#[ \t]*define[ \t]+\w*?(?:{SECRET}|key){SUFFIX}[ \t]+\(?{QUOTED}", is_quoted_secret, IN_QUOTES),
    SecretRule("password", rf"(?i)(?:{PASSWORD}){SUFFIX}\[\w{{0,20}}\][ \t]*=[ \t]*\{{[ \t]*{QUOTED}", is_password, IN_QUOTES),
    SecretRule("password", r"(?i)\b(?:\w{0,20}pass_?key|passcode|(?:gate|alarm|unlock|entry)[ _]?code)(?:[ \t]*[:=]|[ \t](?:is|was))[ \t]*[\"']?(\d{4,8})\b", _is_digit_code),
    SecretRule("password", r"\bAT\+CW(?:JAP|SAP)(?:_CUR|_DEF)?=\"[^\"\n]{1,64}\",\"([^\"\n]{3})", is_literal, IN_QUOTES),
    SecretRule("password", r"\bAT\+MQTTUSERCFG=(?:\d,){2}(?:\"[^\"\n]{0,64}\",){2}\"([^\"\n]{3})", is_literal, IN_QUOTES),
    SecretRule("password", rf"(?i)\bMQTTClient[ \t]?\((?:{_ONE},){{4}}{_VALUE}", is_password, IN_QUOTES),
    SecretRule("password", r"\bWIFI:(?:[STH]:[^;\n]{0,64};){0,3}P:\"?([^;\"\n]{3})", is_literal, r"[^;\"\n]"),
    SecretRule("password", r"\b(?:nmcli|wpa_cli)\b[^\n]*? (?:password|(?:[\w-]+\.)?psk|802-1x\.password)[ \t]+[\\'\"]{0,3}([^\s'\"\\]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"\biwconfig\b[^\n]*? key[ \t]+(?:s:)?([^\s]{5})", _is_argument, ARGUMENT),
    SecretRule("password", r"\biwctl\b[^\n]*? (?:--passphrase|-P)(?:=|[ \t]+)['\"]?([^\s'\"]{3})", _is_argument, ARGUMENT),
    SecretRule("password", r"(?i)\bnetsh[ \t]+wlan\b[^\n]*? key=['\"]?([^\s'\"]{3})", _is_argument, ARGUMENT),
    SecretRule("password", r"\bcreate_ap[ \t]+(?:--?\S+[ \t]+)*\w+[ \t]+\w+[ \t]+[^\s-]\S*[ \t]+['\"]?([^\s'\"]{3})", _is_argument, ARGUMENT),
    SecretRule("password", rf"(?i)\b(?:\w*creds?|\w*credentials|wi-?fi\w*|\w*(?:networks|aps)(?:\[\w*\])?[ \t]*=[ \t]*[\[{{(])[\[\]\w \t]{{0,24}}[=,]?[ \t]*[\[({{]{_QUOTED_ONE},[ \t]?[\"']([^\"'\n]{{3}})", _is_passphrase_of_network, IN_QUOTES),
    SecretRule("password", r"\b(?:espota|upload_flags)[^\n]*?[ =](?:--auth|-a)[ =]['\"]?([^\s'\"]{3})", is_literal, ARGUMENT),
    SecretRule("password", r"(?i)\b(?:esp_now_)?set_?(?:\w{1,16}_?)?(?:password|passwd|passphrase|psk|[pl]mk)\([ \t]?(?:\([\w *]{1,20}\))?[\"']([^\"'\n]{3})", is_password, IN_QUOTES),
    SecretRule("encryption key", r"(?i)\b(?:provision|personalize|join(?:_?otaa)?|set_?(?:app|nwk)s?_?key)[ \t]?\([^\n]{0,160}?[\"']([0-9a-f]{32})[\"']", _is_hexadecimal_key),
    SecretRule("password", r"\b(?:wpa_passphrase|do_wifi_ssid_passphrase|setairportnetwork[ \t]+\w+)[ \t]+(?:\"[^\"\n]{1,64}\"|'[^'\n]{1,64}'|[^\s\"']+)[ \t]+['\"]?([^\s'\"]{4})", _is_argument, ARGUMENT),
    SecretRule("password", r"\b(?:Password[12]?|MqttPassword|WebPassword)[ \t]+([^\s;]{4})", lambda c: _is_argument(c) and re.match(r"[ \t]*(?:;|\n|$)", c.after(20)) is not None, r"[^\s;]"),
    SecretRule("password", r"(?i)\boption[ \t]+(?:key|password)[ \t]+['\"]([^'\"\n]{3})", is_literal, IN_QUOTES),
    SecretRule("password", r"\bwireless\.[\w@\[\]-]+\.key=['\"]?([^\s'\"]{3})", is_literal, ARGUMENT),
    SecretRule("encryption key", r"(?i)\bencryption:\s{1,20}key:[ \t]*[\"']?([A-Za-z0-9+/]{43}=)", is_literal),
    SecretRule("encryption key", r"\bAT\+(?:KEY=)?(?:APP|NWK)S?KEY[=,][ \t]*[\"']?((?:[0-9A-Fa-f]{2}[ :]?){15}[0-9A-Fa-f]{2})", _is_hexadecimal_key),
    SecretRule("encryption key", rf"(?i){_KEY_NAME}[ \t]*[=:(][ \t]*[\w.]{{1,30}}\([ \t]*b?[\"']([0-9a-f]{{32,64}})[\"']", _is_hexadecimal_key),
    SecretRule("encryption key", rf"(?i){_KEY_NAME}[ \t]*(?:\[\w{{0,24}}\])?(?:[ \t]+PROGMEM)?[ \t]*[=:(]?[ \t]*(?:[\w.]{{1,30}}\()?\s{{0,4}}(?:[\[({{]\s{{0,40}}|b?[\"'])({_BYTE}[uU]?[,\s]|\\x)", _is_key),
)  # fmt: skip
