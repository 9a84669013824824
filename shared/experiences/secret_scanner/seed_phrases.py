"""Seed phrases of wallets: twelve or more words after a name such as "recovery phrase"."""

from __future__ import annotations

import re
from typing import Final

from shared.experiences.secret_scanner.rules import Candidate, SecretRule

_PHRASE_NAME: Final = (
    r"(?i:(?:seed|recovery|mnemonic|backup)[-_ ]?(?:phrase|words|seed)|mnemonics?|wallet[-_ ]seed|bip-?39|"
    r"cụm từ (?:khôi phục|hạt giống|ghi nhớ)|助记词|助記詞|恢复短语|种子短语)"
)
_BETWEEN_WORDS: Final = r"[\s\d.,;:|=*()\[\]{}\"'`-]"
_PHRASE_LEAD: Final = rf"(?:[^\n:=]{{0,30}}?(?:[:=]|\b(?:is|was|are)\b|là|是|为))?{_BETWEEN_WORDS}{{0,8}}"
_TWELVE_WORDS: Final = re.compile(rf"[a-z]{{3,8}}(?:{_BETWEEN_WORDS}{{1,8}}[a-z]{{3,8}}){{11}}\b")
_LONGEST_PHRASE: Final = 200
_MIN_DISTINCT_WORDS: Final = 8
"""Random words seldom recur. Those of examples do, such as eleven times "abandon"."""
_PROSE: Final = re.compile(r"\b(?:the|and|for|are|was|were|not|but|from|should|your|which|has|its|into|than)\b")
"""Words that occur in almost any twelve words of prose, but in no word list of wallets."""


def _is_seed_phrase(candidate: Candidate) -> bool:
    words = _TWELVE_WORDS.match(candidate.value + candidate.after(_LONGEST_PHRASE))
    if words is None or _PROSE.search(words[0]):
        return False
    return len(set(re.findall("[a-z]+", words[0]))) >= _MIN_DISTINCT_WORDS


SEED_PHRASES: Final = (
    SecretRule("wallet's seed phrase", rf"{_PHRASE_NAME}{_PHRASE_LEAD}([a-z]{{3}})", _is_seed_phrase, f"(?:[a-z]|{_BETWEEN_WORDS})"),
)  # fmt: skip
