"""Least privilege of recall-kit: each function's policy allows exactly the store actions of its code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from shared.access.api_keys import ApiKeys
from shared.access.credentials import cached_verifier, verifier
from shared.aws.dynamodb import Table
from shared.experiences import index as experience_index
from shared.platform.config import config
from shared.rpc.caller import ANONYMOUS, LOCAL
from shared.rpc.errors import Unavailable
from tests.helpers.dynamodb_requests import answer_operation, intercept_requests
from tests.helpers.experience_client import call_successfully, submit_experience
from tests.helpers.mcp_events import event
from tests.helpers.measured_policies import measures
from tests.helpers.template import table_actions
from workers import count_queries, index_experiences

if TYPE_CHECKING:
    from collections.abc import Callable

    from shared.rpc.caller import Caller


ACCOUNT = {"title": "Bazel cache is cold", "problem_description": "It rebuilds.", "solution": "Share the cache."}
METHODS: dict[str, tuple[Caller, Callable[[str], dict[str, Any]]]] = {
    "query_experiences": (ANONYMOUS, lambda _: {"keywords": "bazel cache cold"}),
    "submit_experience": (ANONYMOUS, lambda _: ACCOUNT),
    "get_experience": (ANONYMOUS, lambda id_: {"id": id_}),
    "update_experience": (
        LOCAL,
        lambda id_: {"id": id_, "title": "Gradle daemon dies", "problem_description": "No memory."},
    ),
    "delete_experience": (LOCAL, lambda id_: {"id": id_}),
    "restore_experience": (LOCAL, lambda id_: {"id": id_}),
}
WITH_A_KEY = ("dynamodb:GetItem", "AccessTable")


def stream_of(pk: str, sk: str) -> dict[str, Any]:
    keys = {"pk": {"S": pk}, "sk": {"S": sk}}
    return {"Records": [{"eventID": "1", "eventName": "INSERT", "dynamodb": {"Keys": keys, "SequenceNumber": "1"}}]}


@measures(*(f"recall_kit-{method}" for method in METHODS))
@pytest.mark.parametrize("method", sorted(METHODS))
def test_policy_allows_exactly_the_actions_used(store: str, method: str, store_actions: set[tuple[str, str]]) -> None:
    own_words = " ".join(uuid4().hex for _ in range(12))
    first = submit_experience("Bazel cache is cold", own_words, "Share the cache.")
    if method == "restore_experience":
        call_successfully("delete_experience", LOCAL, id=first)
    if method == "submit_experience":
        call_successfully(method, **ACCOUNT)  # a near duplicate, which the next one reads
    id_ = submit_experience("Bazel cache is cold again", own_words, "Share the cache.")
    caller, params = METHODS[method]
    store_actions.clear()
    call_successfully(method, caller, **params(first if method == "restore_experience" else id_))
    assert store_actions == table_actions(f"recall_kit-{method}") - {WITH_A_KEY}


@pytest.mark.parametrize("method", ["query_experiences", "submit_experience", "get_experience"])
def test_function_verifies_the_callers_key(
    store: str, method: str, tenant: str, store_actions: set[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    _, text = ApiKeys(Table(config().access_table)).create(tenant, "reader")
    monkeypatch.setattr(config(), "auth", "required")
    for remembered in (verifier, cached_verifier):
        remembered.cache_clear()  # another test's entry may belong to another store
    store_actions.clear()
    handler = importlib.import_module(f"recall_kit.{method}").handler
    assert handler(event({}, authorization=f"Bearer {text}"), None)["statusCode"] == 400
    assert store_actions == {WITH_A_KEY}
    assert WITH_A_KEY in table_actions(f"recall_kit-{method}")


@measures("workers-index_experiences")
def test_policy_of_experience_index_worker(
    store: str, store_actions: set[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> Any:
        raise Unavailable

    submit_experience("Yarn workspace is not hoisted", "Modules are doubled.")
    with monkeypatch.context() as patched:
        patched.setattr(experience_index, "_search_index", away)
        id_ = submit_experience("Yarn workspace is not hoisted", "Modules are doubled.")
    store_actions.clear()
    assert index_experiences.handler(stream_of(f"content#{id_[:2]}", id_), None) == {"batchItemFailures": []}
    assert store_actions == table_actions("workers-index_experiences")


@measures("workers-count_queries")
def test_policy_of_count_worker(store: str, store_actions: set[tuple[str, str]]) -> None:
    submit_experience("Mercurial clone stalls", "It stalls.")
    records: list[tuple[str, str]] = []
    table = config().experiences_table

    def keep(params: Any) -> None:
        if params["Item"]["pk"]["S"].startswith("served#"):
            records.append((params["Item"]["pk"]["S"], params["Item"]["sk"]["S"]))

    with intercept_requests(answer_operation("PutItem", keep)):
        assert call_successfully("query_experiences", keywords="mercurial clone stalls")["experiences"]
    store_actions.clear()
    assert count_queries.handler(stream_of(*records[0]), None) == {"batchItemFailures": []}
    assert store_actions == table_actions("workers-count_queries")
    assert Table(table).get(*records[0]) is None
