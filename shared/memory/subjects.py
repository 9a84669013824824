"""The subjects of one tenant's conversations: whose they are, such as `person:17` or `device:kitchen`.

A subject has a random key, which its conversations and the list of them carry. Erasing a subject replaces the key. That
hides all its conversations at once, and a worker deletes those of the old key.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from shared.aws.dynamodb import Keys, Table, Write, optimistic_retry
from shared.memory import keys
from shared.memory.models import SubjectErasure
from shared.platform.clock import now
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEY: Final = {"#key": "key"}


class Subjects:
    """The subjects of one tenant."""

    def __init__(self, table: Table, tenant_id: str) -> None:
        self._table = table
        self._tenant_id = tenant_id

    def key(self, subject: str) -> str | None:
        """Return the key of a subject, or None if it never had a conversation."""
        item = self._table.get(keys.subject(self._tenant_id, keys.subject_hash(subject)), keys.SUBJECT)
        return item["key"] if item else None

    def all_keys(self, subjects: Iterable[str]) -> dict[str, str]:
        """Return the keys of those subjects that have one."""
        names = {keys.subject(self._tenant_id, keys.subject_hash(each)): each for each in subjects}
        items = self._table.get_all((pk, keys.SUBJECT) for pk in names)
        return {names[item["pk"]]: item["key"] for item in items}

    def claim(self, subject: str) -> tuple[str, Write]:
        """Return the key for a conversation of a subject, and the write that makes sure that it is still the key."""
        target = {"pk": keys.subject(self._tenant_id, keys.subject_hash(subject)), "sk": keys.SUBJECT}
        key = self.key(subject)
        if key is not None:
            return key, Write("ConditionCheck", target, condition="#key = :key", values={":key": key}, names=_KEY)
        key = _new_key()
        return key, Write("Put", target | {"key": key}, condition="attribute_not_exists(pk)")

    def erase(self, subject: str, erased_by: str) -> SubjectErasure:
        """Hide all conversations of a subject at once, and queue them for deletion. Return how many are left."""
        subject_hash = keys.subject_hash(subject)

        def attempt() -> None:
            key = self.key(subject)
            if key is None or not self._has_conversations(key):
                return
            self._table.transact(
                Write(
                    "Update",
                    {"pk": keys.subject(self._tenant_id, subject_hash), "sk": keys.SUBJECT},
                    expression="SET #key = :new",
                    condition="#key = :key",
                    values={":key": key, ":new": _new_key()},
                    names=_KEY,
                ),
                Write(
                    "Put",
                    {
                        "pk": keys.erasures(self._tenant_id),
                        "sk": keys.erasure(subject_hash, key),
                        "requested_at": now(),
                        "requested_by": erased_by,
                    },
                ),
            )

        optimistic_retry(attempt, exhausted=Unavailable("The subject is being erased repeatedly."))
        pages = self._table.query(keys.erasures(self._tenant_id), Keys.beginning(keys.erasure(subject_hash, "")))
        erasures = [item["sk"] for page in pages for item in page]
        left = sum(self._table.count(self._list_of(sk.rpartition("#")[2]), keys.SUBJECT_LIST) for sk in erasures)
        return SubjectErasure("erasing" if erasures else "erased", subject, left)

    def _has_conversations(self, key: str) -> bool:
        return any(page for page in self._table.query(self._list_of(key), keys.SUBJECT_LIST, limit=1))

    def _list_of(self, key: str) -> str:
        return keys.subject_list(self._tenant_id, key)


def _new_key() -> str:
    return secrets.token_hex(16)
