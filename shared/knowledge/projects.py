"""The projects of one tenant and their linked collections."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from shared.aws.dynamodb import ConditionFailed, Item, Keys, Table, Write, from_item, optimistic_retry
from shared.knowledge import keys
from shared.knowledge.errors import no_project, not_linked, project_exists
from shared.knowledge.models import Project
from shared.platform.clock import now
from shared.rpc.errors import Unavailable
from shared.rpc.names import stored_forms


class ProjectStore:
    """The projects of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._partition = keys.partition(tenant_id, "projects")

    def create(self, name: str, collections: Sequence[str] = ()) -> Project:
        """Create a project linked to `collections`."""
        at = now()
        project = Project(name, sorted(set(collections)), [], at, at)
        try:
            self._table.write(Write("Put", self._item(project, 1), condition="attribute_not_exists(pk)"))
        except ConditionFailed:
            raise project_exists(name) from None
        return project

    def require(self, name: str) -> Project:
        """Return the project of this name. Raise an error if it does not exist."""
        return _project(self._read(name))

    def list_all(self) -> list[Project]:
        """Return all projects, ordered by name."""
        return [_project(item) for page in self._table.query(self._partition, Keys.after(" ")) for item in page]

    def link(self, name: str, collections: Sequence[str]) -> Project:
        """Link the project to further collections."""
        return self._change(name, lambda old: replace(old, collections=sorted({*old.collections, *collections})))

    def unlink(self, name: str, collections: Sequence[str]) -> Project:
        """Remove links of the project. Removed collections are no longer defaults either."""
        removed = set(collections)
        return self._change(
            name,
            lambda old: replace(
                old,
                collections=[each for each in old.collections if each not in removed],
                defaults=[each for each in old.defaults if each not in removed],
            ),
        )

    def set_defaults(self, name: str, collections: Sequence[str]) -> Project:
        """Set the collections that the project's queries search by default. They must be linked."""

        def chosen(old: Project) -> Project:
            missing = [each for each in collections if each not in old.collections]
            if missing:
                raise not_linked(name, missing)
            return replace(old, defaults=list(dict.fromkeys(collections)))

        return self._change(name, chosen)

    def forget(self, collection: str) -> None:
        """Unlink a deleted collection from every project."""
        for project in self.list_all():
            if collection in project.collections:
                self.unlink(project.name, [collection])

    def _change(self, name: str, change: Callable[[Project], Project]) -> Project:
        def attempt() -> Project:
            item = self._read(name)
            changed = replace(change(_project(item)), updated_at=now())
            revision = item["revision"]
            item = self._item(changed, revision + 1)
            self._table.write(Write("Put", item, condition="revision = :read", values={":read": revision}))
            return changed

        exhausted = Unavailable("Too many concurrent writers of one project.")
        return optimistic_retry(attempt, exhausted=exhausted)

    def _read(self, name: str) -> Item:
        for each in stored_forms(name):
            item = self._table.get(self._partition, each)
            if item is not None:
                return item
        raise no_project(name)

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
    return from_item(Project, item | {"name": item["sk"]})
