"""The words that open a wallet: a dozen or more, behind what they are called by."""

from __future__ import annotations

import re
from typing import Final

from shared.experiences.secret_scanner.rules import Candidate, SecretRule

_NAME: Final = (
    r"(?i:(?:seed|recovery|mnemonic|backup)[-_ ]?(?:phrase|words|seed)|mnemonics?|wallet[-_ ]seed|bip-?39|"
    r"cụm từ (?:khôi phục|hạt giống|ghi nhớ)|助记词|助記詞|恢复短语|种子短语)"
)
_BETWEEN: Final = r"[\s\d.,;:|=*()\[\]{}\"'`-]"
_LEAD: Final = rf"(?:[^\n:=]{{0,30}}?(?:[:=]|\b(?:is|was|are)\b|là|是|为))?{_BETWEEN}{{0,8}}"
_TWELVE_WORDS: Final = re.compile(rf"[a-z]{{3,8}}(?:{_BETWEEN}{{1,8}}[a-z]{{3,8}}){{11}}\b")
_LONGEST: Final = 200
_FEWEST_DIFFERENT: Final = 8
"""Drawn words hardly recur; those of examples, such as eleven times "abandon", do."""
_OF_PROSE: Final = re.compile(r"\b(?:the|and|for|are|was|were|not|but|from|should|your|which|has|its|into|than)\b")
"""Words that a dozen words of prose hardly do without, and that no wallet has."""


def _is_drawn(candidate: Candidate) -> bool:
    said = _TWELVE_WORDS.match(candidate.value + candidate.after(_LONGEST))
    if said is None or _OF_PROSE.search(said[0]):
        return False
    return len(set(re.findall("[a-z]+", said[0]))) >= _FEWEST_DIFFERENT


WALLETS: Final = (
    SecretRule("wallet's seed phrase", rf"{_NAME}{_LEAD}([a-z]{{3}})", _is_drawn, f"(?:[a-z]|{_BETWEEN})"),
)
