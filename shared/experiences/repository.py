"""The experiences there are: submitted by anyone, read by everyone, moderated by admins."""

from __future__ import annotations

import uuid
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from shared.config import config
from shared.dynamodb import ConditionFailed, Table, Write
from shared.experiences import keys
from shared.experiences.models import Experience, ExperienceReport, now
from shared.rpc.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from shared.dynamodb import Item

_ATTEMPTS: Final = 10
_OF_CONTENT: Final = ("created_at", "revision", "similar_to", "deleted_at")


class ExperienceRepository:
    """The experiences of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add(self, account: ExperienceReport) -> Experience:
        """Publish `account` as a new experience."""
        at = now()
        experience = Experience(str(uuid.uuid4()), account, created_at=at, updated_at=at)
        self._table.write(Write("Put", _item(experience), condition="attribute_not_exists(pk)"))
        return experience

    def require(self, experience_id: str) -> Experience:
        """The experience of this id, which must exist and not be deleted."""
        found = self._shown(experience_id)
        if found is None:
            raise _unknown(experience_id)
        return found

    def readable(self, experience_id: str | None) -> str | None:
        """`experience_id`, where an experience of this id is shown."""
        found = self._shown(experience_id) if experience_id else None
        return found.id if found else None

    def stored(self, ids: Iterable[str]) -> dict[str, Experience]:
        """Those of `ids` that there are, deleted ones too."""
        wanted = list(dict.fromkeys(ids))
        items = self._table.get_all(key(id_) for id_ in wanted for key in (keys.content, keys.standing))
        contents: dict[str, Item] = {}
        standings: dict[str, Item] = {}
        for item in items:
            (contents if item["pk"].startswith(keys.CONTENT) else standings)[item["sk"]] = item
        return {id_: _experience(contents[id_], standings.get(id_)) for id_ in wanted if id_ in contents}

    def update(self, experience_id: str, revise: Callable[[ExperienceReport], ExperienceReport]) -> Experience:
        """Let the experience tell what `revise` makes of its account."""
        return self._change(
            experience_id,
            lambda found: None if found.deleted_at else replace(found, account=revise(found.account)),
        )

    def delete(self, experience_id: str) -> Experience:
        """Show the experience to nobody; what is deleted already stays as it is."""
        return self._change(
            experience_id, lambda found: found if found.deleted_at else replace(found, deleted_at=now())
        )

    def restore(self, experience_id: str) -> Experience:
        """Show a deleted experience again."""
        return self._change(experience_id, lambda found: replace(found, deleted_at=None))

    def note_similar(self, experience: Experience, similar_to: str | None) -> None:
        """Record which older experience this one is nearly the same as, unless it is another by now."""
        pk, sk = keys.content(experience.id)
        noting = Write(
            "Update",
            {"pk": pk, "sk": sk},
            expression="SET similar_to = :similar" if similar_to else "REMOVE similar_to",
            condition="revision = :revision",
            values={":revision": experience.revision} | ({":similar": similar_to} if similar_to else {}),
        )
        try:
            self._table.write(noting)
        except ConditionFailed:
            return  # whoever changed it looks again

    def _shown(self, experience_id: str) -> Experience | None:
        found = self.stored([experience_id]).get(experience_id)
        return None if found is None or found.deleted_at else found

    def _change(self, experience_id: str, change: Callable[[Experience], Experience | None]) -> Experience:
        for _ in range(_ATTEMPTS):
            found = self.stored([experience_id]).get(experience_id)
            changed = change(found) if found else None
            if found is None or changed is None:
                raise _unknown(experience_id)
            if changed == found:
                return found
            written = replace(changed, revision=found.revision + 1, updated_at=now())
            unchanged = {":read": found.revision}
            try:
                self._table.write(Write("Put", _item(written), condition="revision = :read", values=unchanged))
            except ConditionFailed:
                continue  # somebody else changed it just now
            return written
        raise Unavailable("Too many writers of one experience at once.")


def _unknown(experience_id: str) -> NotFound:
    return NotFound(
        "There is no experience of this id.",
        details={"id": experience_id},
        guidance="query_experiences answers the ids that exist.",
    )


def _item(experience: Experience) -> dict[str, Any]:
    pk, sk = keys.content(experience.id)
    said = asdict(experience.account) | {name: getattr(experience, name) for name in _OF_CONTENT}
    item = {"pk": pk, "sk": sk, "changed_at": experience.updated_at} | said
    return {name: value for name, value in item.items() if value is not None}


def _experience(content: Item, standing: Item | None) -> Experience:
    account = ExperienceReport(
        title=content["title"],
        problem_description=content["problem_description"],
        solution=content["solution"],
        keywords=list(content["keywords"]),
        root_cause=content.get("root_cause"),
        context=content.get("context"),
    )
    count, counted_at = (int(standing["query_count"]), standing["updated_at"]) if standing else (0, "")
    return Experience(
        id=content["sk"],
        account=account,
        created_at=content["created_at"],
        updated_at=max(content["changed_at"], counted_at),
        query_count=count,
        revision=int(content["revision"]),
        similar_to=content.get("similar_to"),
        deleted_at=content.get("deleted_at"),
    )


def experiences_table() -> Table:
    """Where everything of experiences is kept."""
    return Table(config().experiences_table)


def experience_repository() -> ExperienceRepository:
    """The experiences, which are everyone's."""
    return ExperienceRepository(experiences_table())
