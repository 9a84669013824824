"""Secrets drawn from a seed, in their makers' forms: nothing here is a key, nor looks like one to who searches for them."""

from __future__ import annotations

import base64
import random
import string
from typing import Final
from uuid import UUID

_DRAW: Final = random.Random(20261118)
_PEM: Final = "-" * 5


def random_text(length: int, of: str = string.ascii_letters + string.digits) -> str:
    """`length` characters, with every class of `of` that a maker's generator would hardly leave out."""
    while True:
        text = "".join(_DRAW.choices(of, k=length))
        if length < 12 or set(of).isdisjoint(string.digits) or not set(text).isdisjoint(string.digits):
            return text


def hexadecimal(length: int) -> str:
    return random_text(length, "0123456789abcdef")


def url_safe(length: int) -> str:
    return "k" + random_text(length - 2, string.ascii_letters + string.digits + "-_") + "7"


def base64_of(size: int) -> str:
    return base64.b64encode(_DRAW.randbytes(size)).decode()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def uuid() -> str:
    return str(UUID(int=_DRAW.getrandbits(128), version=4))


def drawn(least: int, most: int) -> int:
    return _DRAW.randint(least, most)


def digits(length: int) -> str:
    return random_text(length, string.digits)


def card(prefix: str, length: int, gap: str = "") -> str:
    """Return a number with its check digit, in groups of four."""
    number = prefix + digits(length - len(prefix) - 1)
    total = sum(
        int(digit) if place % 2 else sum(divmod(int(digit) * 2, 10)) for place, digit in enumerate(reversed(number))
    )
    number += str(-total % 10)
    return gap.join(number[at : at + 4] for at in range(0, length, 4))


def resident_number(region: str) -> str:
    """Return a Chinese identity number of `region`, with its check digit."""
    number = f"{region}19{_DRAW.randint(55, 99)}{_DRAW.randint(1, 12):02}{_DRAW.randint(1, 28):02}{digits(3)}"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return number + "10X98765432"[sum(int(digit) * weight for digit, weight in zip(number, weights, strict=True)) % 11]


def citizen_number(province: str) -> str:
    """Return a Vietnamese identity number of `province`."""
    return province + random_text(9, string.digits)


def pem(name: str, joint: str = "\n", size: int = 300) -> str:
    body = base64_of(size)
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return joint.join([f"{_PEM}BEGIN {name}{_PEM}", *lines, f"{_PEM}END {name}{_PEM}"])


def key_lines(start: str = "MIIEpAIBAAKCAQEA", size: int = 900) -> list[str]:
    """Return the lines of a private key's body, beginning as its encoding does."""
    body = start + base64_of(size)
    return [body[at : at + 64] for at in range(0, len(body), 64)]


def framed(name: str, lines: list[str]) -> list[str]:
    return [f"{_PEM}BEGIN {name}{_PEM}", *lines, f"{_PEM}END {name}{_PEM}"]


def key_bytes(count: int) -> str:
    return ", ".join(f"0x{hexadecimal(2).upper()}" for _ in range(count))


def url_base64(size: int) -> str:
    return base64.urlsafe_b64encode(_DRAW.randbytes(size)).decode().rstrip("=")


def jwt() -> str:
    parts = ('{"alg":"HS256","typ":"JWT"}', f'{{"sub":"{digits(10)}","name":"Lan","iat":1516239022}}')
    head, body = (base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{body}.{url_safe(43)}"
