"""Words that say nothing by themselves: a search for them alone would match nearly everything."""

from __future__ import annotations

from typing import Final

# Words that are names or abbreviations too, such as "it", "can" or "hay", are not here.
_ENGLISH: Final = (
    "a am an and are as at be been but by for from if in is of on or so than that the then to was were with"
)
_POINTING: Final = "these this those"
_VIETNAMESE: Final = "các cho của cũng là mà những nhưng này nếu như ở rằng sẽ thì và vì với đang đã để đó hoặc"
_WORDS: Final = frozenset(f"{_ENGLISH} {_POINTING} {_VIETNAMESE}".split())
_CHARACTERS: Final = dict.fromkeys(map(ord, "的了和与與及或是在也都就而着吗嗎呢吧啊呀之这這那个個们們把被于於很"))


def is_stop_word(word: str) -> bool:
    """Return True if a run of letters, in the form NFC, is a stop word or consists of characters that are."""
    rest = word.casefold().translate(_CHARACTERS)
    return not rest or rest in _WORDS
