"""Recognition of a text's encoding: UTF-8, UTF-16, GB18030, Windows-1258 (Vietnamese) or Windows-1252 (Western Europe).

A text that could be several is the one whose letters it uses as its languages do.
"""

import re
import unicodedata
from contextlib import suppress
from typing import Final

UTF_8: Final = "UTF-8"
_MARKS_OF_UTF_16: Final = (b"\xff\xfe", b"\xfe\xff")
_BINARY_HEAD: Final = 8192
"""The bytes that are searched for NUL, which no text in UTF-8 has."""
_BLANK: Final = re.compile(r"[\t\n\v\f\r\xa0\xad\u2000-\u200f\u2028\u2029\u3000\ufeff]+")
"""Characters of texts that Python does not call printable."""
_ORDINARY: Final = re.compile(r"[\t\n\r -~\u3000-\u303f\uff00-\uffef]")
"""Characters of texts in any script: the wrong byte order has none of them."""
_ASCII: Final = re.compile(r"[\x00-\x7f]+")
_COMMON_LEADS: Final = bytes([*range(0xA1, 0xA4), *range(0xB0, 0xD8)])
"""First bytes of the punctuation and the 3,755 common ideographs of GB 2312. Others are rare in Chinese texts."""
_MOST_CHINESE: Final = 0.6
_FREQUENT: Final = re.compile(
    "[的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如"
    "都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日]"
)
"""The hundred most frequent ideographs. Texts of other languages in two-byte encodings have few of them."""
_LONG_CHINESE: Final = 100
_FEWEST_FREQUENT: Final = 0.07
_WORD: Final = re.compile(r"[^\W\d_]+")
_TONES: Final = re.compile("[\u0300\u0301\u0303\u0309\u0323]")
_SYLLABLE: Final = re.compile(
    r"(?:ngh|ng|nh|ch|gh|gi|kh|ph|qu|th|tr|[bcdđghklmnprstvx])?(?:(?!ă[aăâeêioôơuưy])[aăâeêioôơuưy]){1,3}(?:ng|nh|ch|[cmnpt])?"
)
_READ_WORDS: Final = 20_000
_MOST_SYLLABLES: Final = 0.8
_MANY_SYLLABLES: Final = 0.3
_LONG_RUN: Final = re.compile(r"[^\x00-\x7f]{4,}")
"""Letters beyond ASCII are single ones in the languages of Western Europe."""
_FEW_LONG_RUNS: Final = 0.2


class NotText(Exception):
    """The bytes are not a text. The message continues a sentence that begins with the file's name."""


class Binary(NotText):
    """The bytes are of a kind that holds no text."""


def decode(content: bytes) -> tuple[str, str]:
    """Return the text and the name of its encoding."""
    if content.startswith(_MARKS_OF_UTF_16):
        try:
            return content.decode("utf-16"), "UTF-16"
        except UnicodeDecodeError:
            raise NotText("is not whole UTF-16") from None
    if b"\0" in content[:_BINARY_HEAD]:
        return _unmarked_utf_16(content), "UTF-16"
    try:
        return content.decode("utf-8-sig"), UTF_8
    except UnicodeDecodeError as error:
        first_invalid = error.start + 1
    if (text := _chinese(content)) is not None:
        return text, "GB18030"
    if _is_damaged_utf_8(content):
        raise NotText(f"is not valid UTF-8 at byte {first_invalid}")
    if (text := _vietnamese(content)) is not None:
        return text, "Windows-1258"
    if (text := _western(content)) is not None:
        return text, "Windows-1252"
    raise NotText("is in no encoding that is recognised: UTF-8, UTF-16, GB18030, Windows-1252, Windows-1258")


def _unmarked_utf_16(content: bytes) -> str:
    """Return the text in the byte order in which it is one."""
    texts = [text for codec in ("utf-16-le", "utf-16-be") if (text := _printable(content, codec)) is not None]
    ordinary = {text: len(_ORDINARY.findall(text)) for text in texts}
    if not any(ordinary.values()):
        raise Binary("is not text")
    return max(texts, key=ordinary.__getitem__)


def _is_damaged_utf_8(content: bytes) -> bool:
    """Return whether most bytes beyond ASCII are characters of UTF-8: a text that was cut or joined with another."""
    characters = _ASCII.sub("", content.decode("utf-8", "replace"))
    return characters.count("\ufffd") * 2 <= len(characters)


def _chinese(content: bytes) -> str | None:
    text = _printable(content, "gb18030")
    if text is None:
        return None
    characters = _ASCII.sub("", text)
    leads = characters.encode("gb2312", "ignore")[::2]
    common = len(leads) - len(leads.translate(None, _COMMON_LEADS))
    if common < _MOST_CHINESE * len(characters):
        return None
    is_chinese = common < _LONG_CHINESE or len(_FREQUENT.findall(text)) >= _FEWEST_FREQUENT * common
    return text if is_chinese else None


def _vietnamese(content: bytes) -> str | None:
    """Return the text if the words with letters that Western Europe has not are Vietnamese syllables."""
    decoded = _printable(content, "cp1258")
    if decoded is None:
        return None
    text = unicodedata.normalize("NFC", decoded)
    words = _WORD.findall(text)[:_READ_WORDS]
    telling = [word for word in words if max(word) > "\xff"]
    is_vietnamese = (
        telling
        and _syllables(telling) >= _MOST_SYLLABLES * len(telling)
        and _syllables(words) >= _MANY_SYLLABLES * len(words)
    )
    return text if is_vietnamese else None


def _syllables(words: list[str]) -> int:
    plain = (_TONES.sub("", unicodedata.normalize("NFD", word.lower())) for word in words)
    return sum(_SYLLABLE.fullmatch(unicodedata.normalize("NFC", word)) is not None for word in plain)


def _western(content: bytes) -> str | None:
    """Return the text if few letters beyond ASCII follow each other: in texts of other scripts most do."""
    text = _printable(content, "cp1252")
    if text is None:
        return None
    in_runs = sum(map(len, _LONG_RUN.findall(text)))
    return text if in_runs <= _FEW_LONG_RUNS * len(_ASCII.sub("", text)) else None


def _printable(content: bytes, codec: str) -> str | None:
    """Return the decoded text, or None if the bytes are not of this encoding or have control characters."""
    with suppress(UnicodeDecodeError):
        text = content.decode(codec)
        if _BLANK.sub("", text).isprintable():
            return text
    return None
