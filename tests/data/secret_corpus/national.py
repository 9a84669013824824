"""National identity numbers drawn by their countries' rules, with the right check characters."""

from __future__ import annotations

from tests.data.secret_corpus.drawing import digits, drawn

_VERHOEFF_STEPS = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)
_VERHOEFF_SUMS = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)


def weighted(number: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True))


def birthday() -> str:
    return f"{drawn(60, 99)}{drawn(1, 12):02}{drawn(1, 28):02}"


def cpf() -> str:
    """Return a number of Brazil's tax register."""
    number = f"{drawn(1, 9)}{digits(8)}"
    for length in (9, 10):
        number += str(weighted(number, tuple(range(length + 1, 1, -1))) * 10 % 11 % 10)
    return f"{number[:3]}.{number[3:6]}.{number[6:9]}-{number[9:]}"


def aadhaar() -> str:
    """Return an Indian Aadhaar number, which a Verhoeff digit ends."""
    number = f"{drawn(2, 9)}{digits(10)}"
    for last in "0123456789":
        total = 0
        for place, digit in enumerate(reversed(number + last)):
            total = int(_VERHOEFF_SUMS[total][int(_VERHOEFF_STEPS[place % 8][int(digit)])])
        if total == 0:
            return f"{number[:4]} {number[4:8]} {number[8:]}{last}"
    raise AssertionError


def korean() -> str:
    """Return a Korean resident registration number of a person born before 2000."""
    number = f"{birthday()}{drawn(1, 2)}{digits(5)}"
    check = (11 - weighted(number, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)) % 11) % 10
    return f"{number[:6]}-{number[6:]}{check}"


def spanish(foreigner: str = "") -> str:
    """Return a Spanish DNI, or the NIE of a foreigner of the series X, Y or Z."""
    number = digits(7) if foreigner else digits(8)
    value = int(str("XYZ".index(foreigner)) + number) if foreigner else int(number)
    return f"{foreigner}{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[value % 23]}"


def singaporean(series: str = "S") -> str:
    """Return a number of Singapore's series S, T, F or G."""
    number = digits(7)
    total = weighted(number, (2, 7, 6, 5, 4, 3, 2)) + (4 if series in "TG" else 0)
    return f"{series}{number}{('JZIHGFEDCBA' if series in 'ST' else 'XWUTRQPNMLK')[total % 11]}"


def pesel() -> str:
    """Return a Polish PESEL."""
    number = birthday() + digits(4)
    return number + str(-weighted(number, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10)


def taiwanese(letter: str = "F") -> str:
    """Return a Taiwanese identity number."""
    county = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(letter) + 10
    number = f"{drawn(1, 2)}{digits(7)}"
    total = county // 10 + county % 10 * 9 + weighted(number, (8, 7, 6, 5, 4, 3, 2, 1))
    return f"{letter}{number}{-total % 10}"


def thai() -> str:
    """Return a Thai identity number."""
    number = f"{drawn(1, 8)}{digits(11)}"
    check = (11 - weighted(number, tuple(range(13, 1, -1))) % 11) % 10
    return f"{number[0]}-{number[1:5]}-{number[5:10]}-{number[10:]}-{check}"
