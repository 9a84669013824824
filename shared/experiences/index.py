"""Indexing and search of experiences. The index proposes matches; the stored experiences are returned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from shared.experiences.ranking import RELEVANCE_DECIMALS, RELEVANCE_FLOOR, ExperienceMatch, month_end, rank
from shared.experiences.repository import experience_repository
from shared.platform.config import config
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.experiences.models import Experience
    from shared.search.exhaustive_search import ExhaustiveSearch

COLLECTION: Final = "experiences"


def search_experiences(keywords: str, offset: int, limit: int) -> tuple[list[tuple[Experience, ExperienceMatch]], int]:
    """Return a page of the experiences that match `keywords`, best first, and the total number of matches."""
    month = month_end(datetime.now(UTC))
    matches = [
        ExperienceMatch(
            id=each.payload["id"],
            relevance=round(each.relevance, RELEVANCE_DECIMALS),
            query_count=each.payload["query_count"],
            created=each.payload["created"],
        )
        for each in _search_index().search(keywords, RELEVANCE_FLOOR)
    ]
    order = rank(matches, month)
    while True:
        page = order[offset : offset + limit]
        stored = experience_repository().find_all(each.id for each in page)
        deleted = {each.id for each in page if each.id not in stored or stored[each.id].deleted_at}
        if not deleted:
            break
        # Deleted, but still in the index: the following matches move up.
        order = [each for each in order if each.id not in deleted]
    # Order the page by the current counts, which the index may not have yet.
    current = [replace(each, query_count=stored[each.id].query_count) for each in page]
    return [(stored[each.id], each) for each in rank(current, month)], len(order)


def index_immediately(experience: Experience) -> None:
    """Index an experience right after its write. If the index is unavailable, the table's stream delivers it again."""
    try:
        _update_index(experience)
    except Unavailable as error:
        logger.warning("not indexed yet", extra={"experience": experience.id, "failure": error.message})


def index_experience(experience_id: str, *, force: bool = False) -> bool:
    """Index an experience, and mark the newer of two near duplicates. Return True if it was indexed.

    An up-to-date experience is indexed only with `force`.
    """
    experience = experience_repository().find_all([experience_id]).get(experience_id)
    if experience is None or not (experience.deleted_at or force or not _is_indexed(experience)):
        return False
    _update_index(experience)
    return True


def _update_index(experience: Experience) -> None:
    if experience.deleted_at:
        _search_index().delete(experience.id, experience.revision)
        return
    text = _text(experience)
    payload = _payload(experience)
    uncompared = payload | {"revision": 0}  # until it has been compared: `_is_indexed` is False meanwhile
    _search_index().put(experience.id, text, experience.revision, uncompared, experience.query_count)
    _note_duplicates(experience, text)
    _search_index().set_payload(experience.id, payload, experience.query_count)


def refresh_counts(ids: Iterable[str]) -> None:
    """Update the query counts by which the index ranks these experiences."""
    for experience in experience_repository().find_all(ids).values():
        compared_revision = _search_index().payload(experience.id).get("revision", 0)  # which counting does not change
        _search_index().set_payload(
            experience.id, _payload(experience) | {"revision": compared_revision}, experience.query_count
        )


def _is_indexed(experience: Experience) -> bool:
    """Return True if the current revision is indexed and was compared with other experiences."""
    is_held = _search_index().holds(experience.id, experience.revision)
    return is_held and _search_index().payload(experience.id).get("revision", 0) >= experience.revision


def _note_duplicates(experience: Experience, text: str) -> None:
    """Record the older one of two near duplicates on the newer one.

    This follows the indexing, so that of two concurrent submissions at least the later one sees the other.
    """
    ids = {each["id"] for each in _search_index().near_duplicates(experience.id, text)}
    similar = [each for each in experience_repository().find_all(ids).values() if not each.deleted_at]
    older = [each for each in similar if _age(each) < _age(experience)]
    oldest = min(older, key=_age).id if older else None
    if oldest != experience.similar_to:
        experience_repository().set_similar_to(experience, oldest)
    for newer in similar:
        if _age(newer) > _age(experience) and newer.similar_to is None:
            experience_repository().set_similar_to(newer, experience.id)


def _age(experience: Experience) -> tuple[float, str]:
    return experience.created, experience.id


def _payload(experience: Experience) -> dict[str, Any]:
    return {
        "id": experience.id,
        "created": experience.created,
        "query_count": experience.query_count,
        "revision": experience.revision,
    }


def _text(experience: Experience) -> str:
    """Return the text to index an experience by. The problem as its reader would describe it comes first."""
    report = experience.report
    parts = (
        report.title,
        report.problem_description,
        ", ".join(report.keywords),
        report.root_cause,
        report.solution,
        report.context,
    )
    return "\n".join(filter(None, parts))


def _search_index() -> ExhaustiveSearch:
    from shared.search.exhaustive_search import open_exhaustive_search

    if not config().has_index:
        raise Unavailable("No index for experiences is configured.", guidance="Tell the operator: it needs Qdrant.")
    return open_exhaustive_search(COLLECTION)
