"""Language detection, and the texts of answers that depend on the language."""

import re
from typing import Final

from shared.search.tokenizer import fold_diacritics

_HAN: Final = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]")
_KANA_OR_HANGUL: Final = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_VIETNAMESE: Final = re.compile(r"[ăđơưĂĐƠƯ\u1ea0-\u1ef9]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_HAN_SHARE: Final = 0.3
_ENGLISH_LIST: Final = (
    "the of and to in is are was for on with by what which who when where how why does do did can it this that a an "
    "be as at from or if you your will not"
)
_VIETNAMESE_LIST: Final = (
    "là của và có cho các những một như thế nào được trong với về tại sao làm bao nhiêu khi đâu gì ai không này đó từ "
    "bằng người phải sẽ đã đang vì nên theo đến ở bởi mấy"
)
_ENGLISH_WORDS: Final = frozenset(_ENGLISH_LIST.split())
_VIETNAMESE_WORDS: Final = frozenset(fold_diacritics(_VIETNAMESE_LIST).split())
_NAMES: Final = {
    "vi": "Vietnamese",
    "zh": "Chinese",
    "en": "English",
    "fr": "French",
    "de": "German",
    "es": "Spanish",
    "ja": "Japanese",
    "ko": "Korean",
    "th": "Thai",
    "id": "Indonesian",
}
_QUOTATION_NOTICES: Final = {
    "vi": "Trích nguyên văn từ tài liệu; không có mô hình ngôn ngữ nào viết câu trả lời này.",
    "zh": "以下为资料原文摘录，未经语言模型撰写。",
    "en": "Quoted from the documents as they stand; no language model has written this answer.",
}


def detect_language(text: str) -> str:
    """Return the language of `text`: vi (with or without diacritics), zh or en, else ''."""
    letters = len(_LETTER.findall(text))
    if not letters or len(_KANA_OR_HANGUL.findall(text)) > letters * _HAN_SHARE / 3:
        return ""
    if len(_HAN.findall(text)) > letters * _HAN_SHARE:
        return "zh"
    if _VIETNAMESE.search(text):
        return "vi"
    words = [word.lower() for word in _WORD.findall(text)]
    english = sum(word in _ENGLISH_WORDS for word in words)
    vietnamese = sum(word in _VIETNAMESE_WORDS for word in words)
    if english == vietnamese:
        return ""
    return "en" if english > vietnamese else "vi"


def primary_language(tag: str) -> str:
    """Return the language of a tag such as vi-VN."""
    return re.split("[-_]", tag, maxsplit=1)[0].lower()


def language_name(tag: str) -> str:
    """Return the name of a tag's language for a model's prompt."""
    name = _NAMES.get(primary_language(tag))
    return f"{name} (language tag {tag})" if name else f"the language with the tag {tag}"


def quotation_notice(language: str) -> str:
    """Return the note in `language` that an answer consists of quotations."""
    return _QUOTATION_NOTICES.get(language, _QUOTATION_NOTICES["en"])
