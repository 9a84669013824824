"""The index of passages: written by whoever changes documents, searched by whoever asks."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shared.knowledge.passages import Document, Hit, Passage, Question


class Index:
    """Passages of all tenants, each seen by its own alone."""

    def replace(self, document: Document, revision: int, passages: Sequence[Passage]) -> bool:
        """Let `passages` be all that is found of `document`, unless a newer revision is there already (False).

        Repeating it changes nothing; a reader between the two may see passages of both revisions.
        """
        raise NotImplementedError

    def delete(self, document: Document, revision: int) -> bool:
        """Let nothing be found of `document`, unless a revision newer than `revision` is there already (False).

        What is written afterwards under `revision` or an older one stays out.
        """
        raise NotImplementedError

    def delete_collection(self, tenant_id: str, collection: str) -> None:
        """Forget everything of a collection."""
        raise NotImplementedError

    def delete_tenant(self, tenant_id: str) -> None:
        """Forget everything of a tenant."""
        raise NotImplementedError

    def revision(self, document: Document) -> int:
        """The revision at which `document` was last replaced or deleted here; 0 where it never was."""
        raise NotImplementedError

    def count(self, tenant_id: str, collection: str | None = None) -> int:
        """How many passages a tenant, or one of its collections, has."""
        raise NotImplementedError

    def search(self, question: Question) -> list[Hit]:
        """The passages that answer `question` best, best first."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the store; whatever was written is kept."""
        raise NotImplementedError


@cache
def knowledge_index() -> Index:
    """The index that the settings name; one a process, for the embedded store belongs to one."""
    return Index()
