"""Finding experiences: the index knows what matches, the experiences as they are now are what is answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from shared.config import config
from shared.experiences.ranking import RELEVANCE_DECIMALS, RELEVANCE_FLOOR, ExperienceMatch, month_end, rank
from shared.experiences.repository import experience_repository
from shared.rpc.errors import Unavailable
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shared.experiences.models import Experience
    from shared.knowledge.exhaustive_search import ExhaustiveSearch

COLLECTION: Final = "experiences"
_ALIKE: Final = 0.9
"""What is more alike than this is nearly the same."""


def search_experiences(keywords: str, offset: int, limit: int) -> tuple[list[tuple[Experience, ExperienceMatch]], int]:
    """The experiences that answer `keywords`, best first, from `offset` on; and how many there are in all."""
    until = month_end(datetime.now(UTC))
    matches = [
        ExperienceMatch(
            id=each.standing["id"],
            relevance=round(each.relevance, RELEVANCE_DECIMALS),
            query_count=int(each.standing["query_count"]),
            created=each.standing["created"],
        )
        for each in _matcher().matches(keywords, RELEVANCE_FLOOR)
    ]
    order = rank(matches, until)
    while True:
        page = order[offset : offset + limit]
        stored = experience_repository().find_all(each.id for each in page)
        gone = {each.id for each in page if each.id not in stored or stored[each.id].deleted_at}
        if not gone:
            break
        # Deleted, and the index does not know it yet: what comes after moves up.
        order = [each for each in order if each.id not in gone]
    # In the order of what is shown, where a count is newer than the index knows.
    shown = {each.id: _as_stored(each, stored[each.id]) for each in page}
    return [(stored[each.id], each) for each in rank(shown.values(), until)], len(order)


def index_immediately(experience_id: str) -> None:
    """Index an experience that was just written; while the index is away, the table's stream brings it again."""
    try:
        index_experience(experience_id)
    except Unavailable as error:
        logger.warning("not indexed yet", extra={"experience": experience_id, "failure": error.message})


def index_experience(experience_id: str, *, force: bool = False) -> bool:
    """Let of an experience be found what it is now, and of two that are nearly the same the newer one say so.

    What is indexed already is left as it is (False), unless it is wanted `anew`.
    """
    from shared.knowledge.exhaustive_search import SearchEntry

    experience = experience_repository().find_all([experience_id]).get(experience_id)
    if experience is None:
        return False
    if experience.deleted_at:
        _matcher().delete(experience.id, experience.revision)
        return True
    if _is_indexed(experience) and not force:
        return False
    text = _text(experience)
    standing = _standing(experience)
    unfinished = standing | {"revision": 0}
    _matcher().keep(SearchEntry(experience.id, text, experience.revision, unfinished, experience.query_count))
    _compare(experience, text)
    _matcher().stand(experience.id, standing, experience.query_count)
    return True


def refresh_counts(ids: Iterable[str]) -> None:
    """Rank these experiences by their counts as they are now."""
    for experience in experience_repository().find_all(ids).values():
        compared = _matcher().standing(experience.id).get("revision", 0)  # which counting does not change
        _matcher().stand(experience.id, _standing(experience) | {"revision": compared}, experience.query_count)


def _is_indexed(experience: Experience) -> bool:
    """Whether it is found as it is, and was compared with others."""
    held = _matcher().holds(experience.id, experience.revision)
    return held and _matcher().standing(experience.id).get("revision", 0) >= experience.revision


def _compare(experience: Experience, text: str) -> None:
    """Record on the newer one of two that are nearly the same which the older one is.

    It comes after the indexing, so that of two submitted at once at least the later one sees the other.
    """
    ids = {each["id"] for each in _matcher().alike(experience.id, text, _ALIKE)}
    alike = [each for each in experience_repository().find_all(ids).values() if not each.deleted_at]
    older = [each for each in alike if _age(each) < _age(experience)]
    first = min(older, key=_age).id if older else None
    if first != experience.similar_to:
        experience_repository().set_similar_to(experience, first)
    for newer in alike:
        if _age(newer) > _age(experience) and newer.similar_to is None:
            experience_repository().set_similar_to(newer, experience.id)


def _age(experience: Experience) -> tuple[float, str]:
    return experience.created, experience.id


def _standing(experience: Experience) -> dict[str, Any]:
    return {
        "id": experience.id,
        "created": experience.created,
        "query_count": experience.query_count,
        "revision": experience.revision,
    }


def _as_stored(match: ExperienceMatch, experience: Experience) -> ExperienceMatch:
    return ExperienceMatch(match.id, match.relevance, experience.query_count, experience.created)


def _text(experience: Experience) -> str:
    """What an experience is found by: first of all what whoever has the problem would say of it."""
    report = experience.report
    said = (
        report.title,
        report.problem_description,
        ", ".join(report.keywords),
        report.root_cause,
        report.solution,
        report.context,
    )
    return "\n".join(filter(None, said))


def _matcher() -> ExhaustiveSearch:
    from shared.knowledge.exhaustive_search import open_exhaustive_search

    if not config().has_index:
        raise Unavailable("There is no index to find experiences in.", guidance="Tell the operator: it needs Qdrant.")
    return open_exhaustive_search(COLLECTION)
