"""National identity numbers: a name next to a number whose check characters are right.

Chinese numbers need no name. Vietnamese and US numbers have no check digit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from shared.experiences.secret_scanner.rules import Candidate, SecretRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SSN: Final = re.compile(r"(?!000|666|9)\d{3}(?!00)\d{2}(?!0000)\d{4}")
_SSN_NAME: Final = (
    r"(?i)(?:(?:^|[^a-z])ssn|social[-_ ]?security(?:[-_ ]?(?:numbers?|num|no))?|số an sinh xã hội|"
    r"社会安全(?:号码?|碼|码)|社安号|社会保障号)"
)
_ANY: Final = r"(?:citizen[-_ ]?id|national[-_ ]?id(?:entity)?|identity[-_ ]?(?:card|no|num)|identification[-_ ]?(?:card|no|num)|\bid[-_ ]?(?:card|no|num))"
"""Names of identity numbers that tell no country."""
_CITIZEN_NAME: Final = (
    r"cccd|cmnd|cmt(?:nd)?\b|c[aă]n c[uư][oơớ]c(?: c[oô]ng d[aâ]n)?|ch[uứ]ng minh (?:nh[aâ]n d[aâ]n|th[uư])|"
    r"(?:s[oố]|m[aã]) (?:đ|d)[iị]nh danh|身份证"
)
_FORMER_NAME: Final = r"cmnd|cmt(?:nd)?\b|ch[uứ]ng minh (?:nh[aâ]n d[aâ]n|th[uư])"
_ROW: Final = r"(?:\n[^\d\n]{0,30}?){0,2}"
"""The beginning of the first row below a header that has the name, and below its rule."""
_LAST_PROVINCE: Final = 96
_SAME: Final = 2
"""At most so many different digits are a made-up number's."""


def _is_social_security_number(digits: str) -> bool:
    return _SSN.fullmatch(digits) is not None and digits not in ("078051120", "219099999")  # printed on wallets


def _is_citizen(digits: str) -> bool:
    """Return True if a Vietnamese number begins with a province's code."""
    return 0 < int(digits[:3]) <= _LAST_PROVINCE and len(set(digits)) > _SAME


def _is_former_citizen(digits: str) -> bool:
    return len(set(digits)) > _SAME and digits not in "0123456789"


def _sum(digits: str, weights: str) -> int:
    """Return the sum of products of digits and weights. A weight is a digit of base 36."""
    return sum(int(digit) * int(weight, 36) for digit, weight in zip(digits, weights, strict=False))


def _is_chinese(number: str) -> bool:
    return number[-1] == "10X98765432"[_sum(number[:17], "79a584216379a5842") % 11]


def _is_brazilian(digits: str) -> bool:
    first = _sum(digits[:9], "a98765432") * 10 % 11 % 10
    second = _sum(digits[:10], "ba98765432") * 10 % 11 % 10
    return digits[9:] == f"{first}{second}" and len(set(digits)) > _SAME


_DIHEDRAL: Final = (
    "0123456789123406789523401789563401289567401239567859876043216598710432765982104387659321049876543210"
)
_PERMUTATIONS: Final = "01234567891576283094580379614289160435279453126870428657390127938064157046913258"
"""The tables of Verhoeff's digit, in rows of ten."""


def _is_indian(digits: str) -> bool:
    """Return True if the Verhoeff digit is right."""
    state = 0
    for place, digit in enumerate(reversed(digits)):
        state = int(_DIHEDRAL[state * 10 + int(_PERMUTATIONS[place % 8 * 10 + int(digit)])])
    return state == 0 and len(set(digits)) > _SAME


def _is_korean(digits: str) -> bool:
    """Return True if the check digit is right. Numbers that were given out since October 2020 have none."""
    recent = digits[6] in "3478" and digits[:4] >= "2010"
    return recent or int(digits[12]) == (11 - _sum(digits[:12], "234567892345") % 11) % 10


def _is_spanish(number: str) -> bool:
    value = number[:-1].translate(str.maketrans("XYZ", "012"))
    return number[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(value) % 23] and len(set(value)) > _SAME


def _is_singaporean(number: str) -> bool:
    letters = {
        "S": (0, "JZIHGFEDCBA"),
        "T": (4, "JZIHGFEDCBA"),
        "F": (0, "XWUTRQPNMLK"),
        "G": (4, "XWUTRQPNMLK"),
        "M": (3, "XWUTRQPNJLK"),
    }
    offset, checks = letters[number[0]]
    return number[-1] == checks[(offset + _sum(number[1:8], "2765432")) % 11]


def _is_polish(digits: str) -> bool:
    return int(digits[-1]) == -_sum(digits[:10], "1379137913") % 10 and len(set(digits)) > _SAME


def _is_taiwanese(number: str) -> bool:
    county = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(number[0]) + 10
    return (county // 10 + county % 10 * 9 + _sum(number[1:9], "87654321") + int(number[9])) % 10 == 0


def _is_thai(digits: str) -> bool:
    return int(digits[12]) == (11 - _sum(digits[:12], "dcba98765432") % 11) % 10 and len(set(digits)) > _SAME


_WITHOUT_CHECK: Final = (_is_citizen, _is_former_citizen)
_DAY: Final = r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_NAMED: Final = (
    (_CITIZEN_NAME, r"0\d{2}[ .-]?\d{3}[ .-]?\d{3}[ .-]?\d{3}", _is_citizen),
    (_FORMER_NAME, r"\d{3}[ .]?\d{3}[ .]?\d{3}", _is_former_citizen),
    (r"(?:\b|_)cpf", r"\d{3}[. ]?\d{3}[. ]?\d{3}[- ]?\d{2}", _is_brazilian),
    (r"aadh?aa?r|uidai|आधार", r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}", _is_indian),
    (
        r"주민(?:등록)?번호|외국인등록번호|(?:\b|_)rrn|resident[-_ ]?registration",
        rf"\d{{2}}{_DAY}[ -]?[1-8]\d{{6}}",
        _is_korean,
    ),
    (r"(?:\b|_)(?:dni|nie|nif)|identidad", r"(?:\d{2}[. ]?\d{3}[. ]?\d{3}|[XYZ][- ]?\d{7})[- ]?[A-Z]", _is_spanish),
    (r"nric|\bfin\b|singpass|uinfin", r"[STFGM]\d{7}[A-Z]", _is_singaporean),
    (r"pesel", r"\d{2}(?:[02468][1-9]|[13579][0-2])(?:0[1-9]|[12]\d|3[01])\d{5}", _is_polish),
    (r"身[分份]證|身[分份]证|統一編號|统一编号|居留證|taiwan(?:ese)?[-_ ]id", r"[A-Z][1289]\d{8}", _is_taiwanese),
    (r"ประจำตัวประชาชน|บัตรประชาชน|thai[-_ ]?id", r"[1-8][ -]?\d{4}[ -]?\d{5}[ -]?\d{2}[ -]?\d", _is_thai),
)
"""Names, forms and checks: Vietnam (twice), Brazil, India, Korea, Spain, Singapore, Poland, Taiwan, Thailand."""


def _checked(is_number: Callable[[str], bool]) -> Callable[[Candidate], bool]:
    """Return the check of a candidate's letters and digits, which nothing continues."""

    def accepts(candidate: Candidate) -> bool:
        goes_on = re.match(r"\w|[.-]\w", candidate.after(2), re.ASCII)
        return goes_on is None and is_number(re.sub(r"[^0-9A-Z]", "", candidate.value.upper()))

    return accepts


def _rules() -> Iterator[SecretRule]:
    for name, number, is_number in _NAMED:
        names = rf"(?:{name}|{_ANY})"
        between = r"[^\d\n]{0,30}?" if is_number in _WITHOUT_CHECK else rf"[^\d\n]{{0,30}}?{_ROW}"
        yield SecretRule("identity number", rf"(?i){names}{between}\b({number})", _checked(is_number))
        yield SecretRule("identity number", rf"(?i)(?:^|[^\w.-])({number})[^\d\n]{{0,20}}{names}", _checked(is_number))


NATIONAL_NUMBERS: Final = (
    SecretRule("social security number", rf"{_SSN_NAME}[^\d\n]{{0,20}}(\d{{3}}[- ]\d{{2}}[- ]\d{{4}})", _checked(_is_social_security_number)),
    SecretRule("social security number", rf"{_SSN_NAME}\W{{0,6}}(?:(?:is|was|là|是|为)\W{{0,3}})?(\d{{9}})", _checked(_is_social_security_number)),
    SecretRule("identity number", rf"(?:^|[^\w.-])([1-9]\d{{5}}[ ]?(?:18|19|20)\d{{2}}{_DAY}[ ]?\d{{3}}[\dXx])", _checked(_is_chinese)),
    *_rules(),
)  # fmt: skip
