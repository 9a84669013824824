"""Passages for tests: sample texts, and helpers to index and search them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.search.passages import DocumentRef, Passage, SearchHit, SearchQuestion

if TYPE_CHECKING:
    from shared.search.index import PassageIndex

TEXTS = [
    "Đội tuyển bóng đá quốc gia Việt Nam vô địch giải Đông Nam Á năm 2018 sau khi thắng Malaysia.",
    "The restaurant opens at six in the evening and serves fresh seafood from the harbour.",
    "量子计算机利用叠加态和纠缠来同时处理许多可能性。",
    "Pods are the smallest deployable units of computing that you can create in Kubernetes.",
    "Cà phê sữa đá là thức uống phổ biến ở Sài Gòn, pha bằng phin nhôm.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen.",
]


def index_texts(index: PassageIndex, document: DocumentRef, revision: int, *texts: str, **more: Any) -> bool:
    """Index `texts` as the document's passages."""
    passages = [Passage(document, ordinal, text, revision, **more) for ordinal, text in enumerate(texts)]
    return index.replace(document, revision, passages)


def found_texts(index: PassageIndex, tenant: str, text: str, **more: Any) -> list[str]:
    """Return the texts of the search hits, best first."""
    return [hit.passage.text for hit in search_hits(index, tenant, text, **more)]


def search_hits(index: PassageIndex, tenant: str, text: str, **more: Any) -> list[SearchHit]:
    """Return the search hits, best first."""
    return index.search(SearchQuestion(text, tenant, ("c",), **more)).hits
