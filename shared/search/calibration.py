"""The constants of ranking that depend on the embedding model. `make bench` measures them (docs/knowledge.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Calibration:
    """The scale of a model's similarities, and the weights and thresholds on it. Defaults are multilingual-e5-small's.

    A similarity is a cosine's position between `unrelated` texts (0) and the closest ones (1).
    """

    unrelated: float = 0.7
    """The cosine of unrelated texts."""
    reach: float = 0.3
    """The distance from there to the cosine of the closest texts."""
    centered_unrelated: float = 0.79
    """`unrelated` for vectors of documents, from which the language's component was removed."""
    centered_reach: float = 0.18
    tokens_lower: float = 0.1
    """Cosines of token vectors are lower than those of whole texts by this much."""

    late_interaction: float = 0.7
    """Weight of the token vectors' similarity, relative to that of whole texts."""
    beginning: float = 0.2
    """Weight of the similarity of the document's first passage, relative to a later passage's own."""
    words: float = 0.09
    """Weight of the passage's keyword match, relative to similarity, if one passage has all words of the question."""
    document_words: float = 0.18
    """Weight of the whole document's keyword match, relative to similarity."""
    restored_words: float = 1.2
    """Weight of any keyword match if the question's diacritics were restored: similarity is that of a guess."""

    message_words: float = 0.5
    """Weight of a message's keyword match, relative to the similarity of its token vectors."""
    message_words_without_tokens: float = 0.7
    """The same, relative to the similarity of the whole texts."""
    words_before: float = 0.3
    """Weight of the words of each of the two messages before a message, relative to its own."""

    language_floors: Mapping[str, float] = field(
        default_factory=lambda: {"en": 0.70, "vi": 0.77, "zh": 0.80}, hash=False
    )
    """Similarities from which a passage is relevant to a question of its language."""
    default_floor: float = 0.74
    code_floor: float = 0.69
    """Code and tables are in no language, or in another one than their questions."""
    cross_language_floor: float = 0.50
    cross_language_gap: float = 0.15
    """The largest distance to the best hit for a passage in another language; that floor is low."""
    overlap_weight: float = 0.25
    """Weight of the share of the question's words that a passage contains, relative to similarity."""
    whole_texts_lower: float = 0.2
    """Similarities of whole texts are lower than those of token vectors by this much."""

    convincing: float = 0.65
    """From this similarity on, a passage answers a query even without a common word, as across languages."""
    convincing_with_words: float = 0.5

    unrelated_entry: float = 0.25
    related_entry: float = 0.75
    """Similarities of a question to unrelated entries and to its answers. A question never equals its answer."""
    duplicate: float = 0.9
    """Entries with a higher similarity are near duplicates."""
