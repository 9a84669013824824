"""Names of documents: the words of their titles and ids, and the items by which they are found.

Each word has an item, whose key begins with the word, so that the items of a beginning are next to each other. An item
is written with the title that it is of, in one transaction. A document with very many words has one item for those
that have none: each search reads these too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from shared.aws.dynamodb import Write
from shared.documents import keys
from shared.rpc.unicode_forms import normalize
from shared.search.tokenizer import PIECES, fold_diacritics

if TYPE_CHECKING:
    from shared.aws.dynamodb import Item
    from shared.documents.unit_of_work import DocumentHead

MOST_WORDS: Final = 24
"""The words of a document with an item each: a new document at the deepest level leaves no more of a transaction."""
_MAX_WORD: Final = 64
_MAX_WORDS_BYTES: Final = 600
"""An item of up to 1 KB costs one write unit."""


def words(text: str) -> list[str]:
    """Return the different words of a text without case and diacritics.

    In scripts without spaces, a word begins at each character.
    """
    different: dict[str, None] = {}
    for unspaced, word in PIECES.findall(normalize("NFKC", text)):
        run = "".join(_folded(unspaced[start : start + _MAX_WORD]) for start in range(0, len(unspaced), _MAX_WORD))
        different |= dict.fromkeys(run[start : start + _MAX_WORD] for start in range(len(run)))
        different[_folded(word[:_MAX_WORD])] = None
    different.pop("", None)
    return list(different)


def asked_words(query: str) -> list[str]:
    """Return the different words of a query, whose beginnings are wanted. The longest is first."""
    pieces = (unspaced or word for unspaced, word in PIECES.findall(normalize("NFKC", query)))
    return sorted(dict.fromkeys(filter(None, (_folded(piece[:_MAX_WORD]) for piece in pieces))), key=len, reverse=True)


def document_words(head: DocumentHead) -> list[str]:
    """Return the words of a document's title and id."""
    title = json.loads(head.metadata).get("title") or ""
    return list(dict.fromkeys([*words(title), *words(head.document_id)]))


def word_items(tenant_id: str, head: DocumentHead) -> dict[tuple[str, str], Item]:
    """Return the items by which a document is found, by their keys."""
    own = document_words(head)
    listed = " ".join(own)
    known: dict[str, Any] = {"document_id": head.document_id}
    if len(listed.encode("utf-8")) <= _MAX_WORDS_BYTES:
        known["words"] = listed
    indexed = own[:MOST_WORDS] + [""] * (len(own) > MOST_WORDS)
    item_keys = [(keys.words(tenant_id, word), keys.word(word, head.document_id)) for word in indexed]
    return {(pk, sk): {"pk": pk, "sk": sk} | known for pk, sk in item_keys}


def word_writes(tenant_id: str, old: DocumentHead | None, new: DocumentHead) -> list[Write]:
    """Build the writes that keep a document's words, if its title has changed."""
    before = word_items(tenant_id, old) if old else {}
    after = word_items(tenant_id, new)
    if before == after:
        return []
    gone = [Write("Delete", {"pk": pk, "sk": sk}) for pk, sk in before.keys() - after.keys()]
    return [*gone, *(Write("Put", item) for key, item in after.items() if before.get(key) != item)]


def have_words(own: list[str], asked: list[str]) -> bool:
    """Return True if each word that was asked for begins one of the document's own."""
    return all(any(word.startswith(beginning) for word in own) for beginning in asked)


def _folded(word: str) -> str:
    return fold_diacritics(word.casefold())
