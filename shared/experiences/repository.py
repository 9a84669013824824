"""The store of experiences, which all callers can submit and read, and admins moderate."""

import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final

from shared.aws.dynamodb import ConditionFailed, Item, Table, Write, from_item, optimistic_retry
from shared.experiences import keys
from shared.experiences.models import Experience, ExperienceReport
from shared.platform.clock import now
from shared.platform.config import config
from shared.rpc.errors import NotFound, Unavailable

_CONTENT_FIELDS: Final = ("created_at", "revision", "similar_to", "deleted_at")


class ExperienceRepository:
    """The experiences in one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add(self, report: ExperienceReport) -> Experience:
        """Store a report as a new experience."""
        at = now()
        experience = Experience(str(uuid.uuid4()), report, created_at=at, updated_at=at)
        self._table.write(Write("Put", _item(experience), condition="attribute_not_exists(pk)"))
        return experience

    def require(self, experience_id: str) -> Experience:
        """Return an experience. Raise NotFound if it does not exist or is deleted."""
        experience = self.find(experience_id)
        if experience is None:
            raise _not_found(experience_id)
        return experience

    def find(self, experience_id: str) -> Experience | None:
        """Return an experience, or None if it does not exist or is deleted."""
        experience = self.find_all([experience_id]).get(experience_id)
        return None if experience is None or experience.deleted_at else experience

    def find_all(self, ids: Iterable[str]) -> dict[str, Experience]:
        """Return the existing experiences among `ids`, deleted ones included."""
        unique_ids = list(dict.fromkeys(ids))
        items = self._table.get_all(key(id_) for id_ in unique_ids for key in (keys.content, keys.query_counter))
        contents: dict[str, Item] = {}
        counters: dict[str, Item] = {}
        for item in items:
            (contents if item["pk"].startswith(keys.CONTENT) else counters)[item["sk"]] = item
        return {id_: _experience(contents[id_], counters.get(id_)) for id_ in unique_ids if id_ in contents}

    def update(self, experience_id: str, revise: Callable[[ExperienceReport], ExperienceReport]) -> Experience:
        """Replace the report of an experience by what `revise` makes of it."""
        return self._change(
            experience_id,
            lambda current: None if current.deleted_at else replace(current, report=revise(current.report)),
        )

    def delete(self, experience_id: str) -> Experience:
        """Delete an experience softly. Change nothing if it is already deleted."""
        return self._change(
            experience_id, lambda current: current if current.deleted_at else replace(current, deleted_at=now())
        )

    def restore(self, experience_id: str) -> Experience:
        """Restore a deleted experience."""
        return self._change(experience_id, lambda current: replace(current, deleted_at=None))

    def set_similar_to(self, experience: Experience, similar_to: str | None) -> None:
        """Store the id of an older, nearly identical experience, unless `experience` has changed meanwhile."""
        pk, sk = keys.content(experience.id)
        update = Write(
            "Update",
            {"pk": pk, "sk": sk},
            expression="SET similar_to = :similar" if similar_to else "REMOVE similar_to",
            condition="revision = :revision",
            values={":revision": experience.revision} | ({":similar": similar_to} if similar_to else {}),
        )
        with suppress(ConditionFailed):  # the writer of a newer revision compares it again
            self._table.write(update)

    def _change(self, experience_id: str, change: Callable[[Experience], Experience | None]) -> Experience:
        def attempt() -> Experience:
            current = self.find_all([experience_id]).get(experience_id)
            changed = change(current) if current else None
            if current is None or changed is None:
                raise _not_found(experience_id)
            if changed == current:
                return current
            changed = replace(changed, revision=current.revision + 1, updated_at=now())
            condition, values = "revision = :current", {":current": current.revision}
            self._table.write(Write("Put", _item(changed), condition=condition, values=values))
            return changed

        exhausted = Unavailable("Too many concurrent writers of one experience.")
        return optimistic_retry(attempt, exhausted=exhausted)


def _not_found(experience_id: str) -> NotFound:
    return NotFound(
        "Experience not found.",
        details={"id": experience_id},
        guidance="query_experiences returns the ids of existing experiences.",
    )


def _item(experience: Experience) -> dict[str, Any]:
    pk, sk = keys.content(experience.id)
    content = asdict(experience.report) | {name: getattr(experience, name) for name in _CONTENT_FIELDS}
    item = {"pk": pk, "sk": sk, "changed_at": experience.updated_at} | content
    return {name: value for name, value in item.items() if value is not None}


def _experience(content: Item, counter: Item | None) -> Experience:
    count, counted_at = (counter["query_count"], counter["updated_at"]) if counter else (0, "")
    return Experience(
        id=content["sk"],
        report=from_item(ExperienceReport, content),
        created_at=content["created_at"],
        updated_at=max(content["changed_at"], counted_at),
        query_count=count,
        revision=content["revision"],
        similar_to=content.get("similar_to"),
        deleted_at=content.get("deleted_at"),
    )


def experiences_table() -> Table:
    """Return the experiences table."""
    return Table(config().experiences_table)


def experience_repository() -> ExperienceRepository:
    """Return the repository of all experiences."""
    return ExperienceRepository(experiences_table())
