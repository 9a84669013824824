"""The projects of one tenant, and the collections that they are linked to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from shared.clock import now
from shared.dynamodb import ConditionFailed, Keys, Write
from shared.knowledge import keys
from shared.knowledge.errors import no_project, not_linked, project_exists
from shared.knowledge.models import Project
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.dynamodb import Item, Table

_ATTEMPTS: Final = 10


class ProjectStore:
    """The projects of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._partition = keys.projects(tenant_id)

    def create(self, name: str, collections: Sequence[str] = ()) -> Project:
        """Make a project, linked to `collections`."""
        at = now()
        project = Project(name, sorted(set(collections)), [], at, at)
        try:
            self._table.write(Write("Put", self._item(project, 1), condition="attribute_not_exists(pk)"))
        except ConditionFailed:
            raise project_exists(name) from None
        return project

    def require(self, name: str) -> Project:
        """The project of this name, which must exist."""
        return _project(self._read(name))

    def listed(self) -> list[Project]:
        """All projects, by name."""
        return [_project(item) for page in self._table.query(self._partition, Keys.after(" ")) for item in page]

    def link(self, name: str, collections: Sequence[str]) -> Project:
        """Link the project to `collections` too."""
        return self._change(name, lambda old: replace(old, collections=sorted({*old.collections, *collections})))

    def unlink(self, name: str, collections: Sequence[str]) -> Project:
        """Link the project to `collections` no more; they are no defaults either."""
        gone = set(collections)
        return self._change(
            name,
            lambda old: replace(
                old,
                collections=[each for each in old.collections if each not in gone],
                defaults=[each for each in old.defaults if each not in gone],
            ),
        )

    def set_defaults(self, name: str, collections: Sequence[str]) -> Project:
        """Let the project's queries search `collections`, which it is linked to, where they name none."""

        def chosen(old: Project) -> Project:
            missing = [each for each in collections if each not in old.collections]
            if missing:
                raise not_linked(name, missing)
            return replace(old, defaults=list(dict.fromkeys(collections)))

        return self._change(name, chosen)

    def forget(self, collection: str) -> None:
        """Unlink a collection that is gone from every project."""
        for project in self.listed():
            if collection in project.collections:
                self.unlink(project.name, [collection])

    def _change(self, name: str, change: Callable[[Project], Project]) -> Project:
        for _ in range(_ATTEMPTS):
            item = self._read(name)
            changed = replace(change(_project(item)), updated_at=now())
            revision = int(item["revision"])
            write = Write(
                "Put",
                self._item(changed, revision + 1),
                condition="revision = :read",
                values={":read": revision},
            )
            try:
                self._table.write(write)
            except ConditionFailed:
                continue  # somebody else changed it meanwhile
            return changed
        raise Unavailable("Too many writers at once.")

    def _read(self, name: str) -> Item:
        item = self._table.get(self._partition, name)
        if item is None:
            raise no_project(name)
        return item

    def _item(self, project: Project, revision: int) -> dict[str, Any]:
        return {
            "pk": self._partition,
            "sk": project.name,
            "collections": project.collections,
            "defaults": project.defaults,
            "created_at": project.created_at,
            "updated_at": project.updated_at,
            "revision": revision,
        }


def _project(item: Item) -> Project:
    return Project(item["sk"], item["collections"], item["defaults"], item["created_at"], item["updated_at"])
