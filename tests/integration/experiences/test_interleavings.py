"""Another caller changes or counts an experience between what a caller has read and what it writes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.aws.dynamodb import ConditionFailed
from shared.experiences.models import ExperienceReport
from shared.experiences.query_counts import QueryCounts
from shared.experiences.repository import ExperienceRepository, experience_repository, experiences_table
from shared.rpc.errors import NotFound
from tests.helpers.interference import another_caller

REPORT = ExperienceReport(
    title="Kafka lags", problem_description="It falls behind.", solution="Add partitions.", keywords=[]
)


@pytest.fixture
def experiences(store: str) -> ExperienceRepository:
    return experience_repository()


def test_changes_of_two_moderators_are_both_stored(experiences: ExperienceRepository) -> None:
    id_ = experiences.add(REPORT).id
    theirs = lambda: experiences.update(id_, lambda report: replace(report, title="Theirs"))  # noqa: E731
    with another_caller(theirs, before="PutItem"):
        changed = experiences.update(id_, lambda report: replace(report, solution="Mine."))
    assert (changed.revision, changed.report.title, changed.report.solution) == (3, "Theirs", "Mine.")
    assert experiences.require(id_).report == changed.report


def test_experience_that_was_just_deleted_is_not_updated(experiences: ExperienceRepository) -> None:
    id_ = experiences.add(REPORT).id
    with another_caller(lambda: experiences.delete(id_), before="PutItem"), pytest.raises(NotFound):
        experiences.update(id_, lambda report: replace(report, title="Mine"))
    assert experiences.find(id_) is None


def test_experience_that_was_just_changed_is_deleted_as_it_is(experiences: ExperienceRepository) -> None:
    id_ = experiences.add(REPORT).id
    theirs = lambda: experiences.update(id_, lambda report: replace(report, title="Theirs"))  # noqa: E731
    with another_caller(theirs, before="PutItem"):
        assert experiences.delete(id_).revision == 3
    assert experiences.restore(id_).report.title == "Theirs"


def test_likeness_of_a_report_that_was_just_changed_is_not_stored(experiences: ExperienceRepository) -> None:
    experience = experiences.add(REPORT)
    theirs = lambda: experiences.update(experience.id, lambda report: replace(report, title="Theirs"))  # noqa: E731
    with another_caller(theirs, before="UpdateItem"):
        experiences.set_similar_to(experience, "an older one")
    changed = experiences.require(experience.id)
    assert changed.similar_to is None
    experiences.set_similar_to(changed, "an older one")
    assert experiences.require(experience.id).similar_to == "an older one"
    experiences.set_similar_to(changed, None)
    assert experiences.require(experience.id).similar_to is None


def test_experience_never_replaces_another(experiences: ExperienceRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    first = experiences.add(REPORT)
    monkeypatch.setattr("uuid.uuid4", lambda: first.id)
    with pytest.raises(ConditionFailed):
        experiences.add(replace(REPORT, title="Another"))
    assert experiences.require(first.id).report == REPORT


@pytest.mark.parametrize("is_deleted", [False, True])
def test_result_that_another_worker_just_counted_counts_once(
    experiences: ExperienceRepository, is_deleted: bool
) -> None:
    """A worker that crashed before it deleted the result, or one that has deleted it, has counted it."""
    id_ = experiences.add(REPORT).id
    counts = QueryCounts(experiences_table())
    before = noted()
    counts.record_result([id_])
    (result,) = noted() - before

    def count_and_crash() -> None:
        def crash(_ids: set[str]) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            counts.count([result], crash)

    theirs = (lambda: counts.count([result], lambda _: None)) if is_deleted else count_and_crash
    with another_caller(theirs, before="TransactWriteItems"):
        counts.count([result], lambda _: None)
    assert experiences.require(id_).query_count == 1
    assert result not in noted()


def noted() -> set[tuple[str, str]]:
    return {(item["pk"], item["sk"]) for page in experiences_table().scan("served#") for item in page}
