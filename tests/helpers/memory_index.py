"""A passage index in memory, which keeps the promises of its port."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from shared.platform.background import submit
from shared.rpc.errors import Unavailable
from shared.search.embedding import Embedding
from shared.search.hybrid_search import Candidates, Ranking
from shared.search.index import NO_METADATA, Metadata, PassageIndex
from shared.search.passages import SearchHit
from shared.search.store import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from shared.search.passages import DocumentRef, Passage, SearchQuestion


class MemoryIndex(PassageIndex):
    """Passages by document. `down` makes it answer nothing, `replaced` counts its writes."""

    def __init__(self) -> None:
        self.down = False
        self.replaced = 0
        self._revisions: dict[DocumentRef, int] = {}
        self._passages: dict[DocumentRef, list[Passage]] = {}
        self._lock = threading.Lock()

    def replace(
        self,
        document: DocumentRef,
        revision: int,
        passages: Sequence[Passage],
        *,
        resume: bool = False,  # noqa: ARG002
        metadata: Metadata = NO_METADATA,  # noqa: ARG002
    ) -> bool:
        with self._writing():
            self.replaced += 1
            if self._revisions.get(document, 0) > revision or (
                self._revisions.get(document) == revision and document not in self._passages
            ):
                return False
            self._revisions[document] = revision
            self._passages[document] = list(passages)
            return True

    def delete(self, document: DocumentRef, revision: int) -> bool:
        with self._writing():
            if self._revisions.get(document, 0) > revision:
                return False
            self._revisions[document] = revision
            self._passages.pop(document, None)
            return True

    def forget(self, document: DocumentRef) -> None:
        with self._writing():
            self._revisions.pop(document, None)
            self._passages.pop(document, None)

    def delete_collection(self, tenant_id: str, collection: str) -> None:
        with self._writing():
            for document in [*self._passages]:
                if (document.tenant_id, document.collection) == (tenant_id, collection):
                    del self._passages[document]

    def holds(self, document: DocumentRef, revision: int) -> bool:
        with self._writing():
            return self._revisions.get(document, 0) >= revision and document in self._passages

    def metadata(self, document: DocumentRef) -> list[str] | None:  # noqa: ARG002 - nothing is filtered here
        return None

    def set_metadata(self, document: DocumentRef, metadata: Metadata) -> None:
        pass

    def count(self, tenant_id: str, collection: str | None = None) -> int:
        return sum(
            len(passages)
            for document, passages in self._passages.items()
            if document.tenant_id == tenant_id and collection in (None, document.collection)
        )

    def embed(self, text: str) -> Future[Embedding]:  # noqa: ARG002 - nothing is embedded here
        return submit(lambda: Embedding([]))

    def candidates(self, question: SearchQuestion, embedding: Future[Embedding] | None = None) -> Candidates:  # noqa: ARG002
        passages = {hit.passage.id: hit.passage for hit in self._hits(question)}
        return Candidates(question, Scope(question.tenant_id), passages=passages)

    def rank(self, candidates: Candidates, deadline: float = math.inf) -> Ranking:  # noqa: ARG002
        hits = sorted((each for each in self._hits(candidates.question) if each.score), key=lambda each: -each.score)
        return Ranking(hits[: candidates.question.top_k], "meaning")

    def _hits(self, question: SearchQuestion) -> list[SearchHit]:
        wanted = set(question.text.lower().split())
        hits = []
        for document, passages in self._passages.items():
            if document.tenant_id == question.tenant_id and document.collection in question.collections:
                for passage in passages:
                    overlap = len(wanted & set(passage.text.lower().split())) / len(wanted)
                    hits.append(SearchHit(passage, overlap, overlap, overlap))
        return hits

    def _writing(self) -> threading.Lock:
        if self.down:
            raise Unavailable
        return self._lock
