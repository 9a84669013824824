"""Rate limits of anonymous callers, keys and tenants, at the real store; the tests move the clock."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import TYPE_CHECKING, Any, get_args
from uuid import uuid4

import pytest

from discovery import health
from endpoints import actions, jsonrpc, recall_kit_mcp
from recall_kit import get_experience
from shared.access import rate_limits
from shared.access.api_keys import ApiKeys
from shared.access.credentials import cached_verifier, verifier
from shared.access.rate_limits import LEASE_SECONDS, RateLimits, SignInRequest
from shared.aws.dynamodb import Table
from shared.platform.config import config
from shared.platform.runtime import runtime
from shared.rpc.caller import Caller
from shared.rpc.catalogue import catalogue
from shared.rpc.errors import TooManyRequests, Unavailable
from tests.helpers.clock import Clock
from tests.helpers.dynamodb_requests import intercept_requests
from tests.helpers.mcp_events import REVISIONS, event, request_event, response_message
from tests.helpers.settings import changed_settings
from tests.helpers.template import METERING, METHODS, all_table_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.rpc.caller import Role

MISSING = str(uuid4())
"""The id of no experience."""


@pytest.fixture(autouse=True)
def updates(store: str) -> Iterator[list[str]]:
    """Empty the buckets' table, and yield the updates of it."""
    table = Table(config().limits_table)
    for page in table.scan("bucket#"):
        table.delete_all((item["pk"], item["sk"]) for item in page)
    made: list[str] = []

    def look(operation: str, params: Any) -> None:
        if params.get("TableName") == config().limits_table:
            made.append(operation)

    with intercept_requests(look):
        yield made


def limits(clock: Clock, **settings: int) -> RateLimits:
    """Return the rate limits of one more process."""
    return RateLimits(Table(config().limits_table), changed_settings(**settings), clock)


def anonymous(address: str) -> Caller:
    return Caller("anonymous", frozenset(), "", source=address)


def passed(process: RateLimits, caller: Caller, calls: int, role: Role = "reader") -> int:
    """Return how many of the calls pass."""
    return sum(passes(process, caller, role) for _ in range(calls))


def passes(process: RateLimits, caller: Caller, role: Role = "reader") -> bool:
    try:
        process.require_capacity(caller, role)
    except TooManyRequests:
        return False
    return True


def test_default_limits() -> None:
    """The contract's numbers: the same in the settings and in the template."""
    settings = config()
    assert (settings.address_query_burst, settings.address_queries_a_minute) == (600, 120)
    assert (settings.address_submission_burst, settings.address_submissions_a_minute) == (100, 10)
    assert (settings.anonymous_queries_a_minute, settings.anonymous_submissions_a_minute) == (1200, 120)
    assert (settings.key_calls_a_minute, settings.tenant_calls_a_minute) == (30_000, 120_000)


def test_queries_of_an_address(updates: list[str]) -> None:
    """A burst of queries, then those that flow in: an update a bucket each, and none once the bucket is empty."""
    clock = Clock()
    process = limits(clock, address_query_burst=20)
    here, there = anonymous("198.51.100.1"), anonymous("198.51.100.2")
    assert passed(process, here, 30) == 20
    assert updates == ["UpdateItem"] * 2 * 20
    with pytest.raises(TooManyRequests, match="at most 120 a minute, 20 at once") as refused:
        process.require_capacity(here, "reader")
    assert refused.value.details == {"retry_after_seconds": 1}
    assert passes(process, there)
    clock.advance(0.499)
    assert not passes(process, here)
    clock.advance(0.001)
    assert passed(process, here, 10) == 1
    clock.advance(5)
    assert passed(process, here, 20) == 10
    clock.advance(3600)
    assert passed(process, here, 30) == 20


def test_submissions_of_an_address() -> None:
    """Submissions have buckets of their own."""
    clock = Clock()
    process = limits(clock, address_submission_burst=10)
    here = anonymous("198.51.100.1")
    assert passed(process, here, 12, "writer") == 10
    with pytest.raises(TooManyRequests) as refused:
        process.require_capacity(here, "writer")
    assert refused.value.details == {"retry_after_seconds": 6}
    assert passes(process, Caller("writing", frozenset({"writer"}), "acme", source="198.51.100.1"), "writer")
    assert passes(process, here, "reader")
    clock.advance(30)
    assert passed(process, here, 12, "writer") == 5


def test_readers_key_submits_whatever_strangers_do() -> None:
    """A reader submits as fast as an address, but by its key: strangers neither slow it down nor exhaust its total."""
    process = limits(Clock(), address_submission_burst=10, anonymous_submissions_a_minute=0)
    reader = Caller("reading", frozenset({"reader"}), f"tenant-{uuid4().hex}", source="198.51.100.1")
    assert not passes(process, anonymous("198.51.100.1"), "writer")
    assert passed(process, reader, 12, "writer") == 10
    with pytest.raises(TooManyRequests, match="submissions with this key: at most 10 a minute, 10 at once"):
        process.require_capacity(reader, "writer")
    assert passes(process, reader, "reader")
    assert passes(process, Caller("other", frozenset({"reader"}), reader.tenant_id), "writer")


@pytest.mark.parametrize("role", ["reader", "writer"])
def test_all_addresses_together(role: Role) -> None:
    """Strangers share a total. A flood of one address, refused, takes nothing from the others."""
    clock = Clock()
    own = {"address_query_burst": 8, "address_submission_burst": 8}
    total = {"anonymous_queries_a_minute": 20, "anonymous_submissions_a_minute": 20}
    processes = [limits(clock, **own, **total) for _ in range(3)]
    assert passed(processes[0], anonymous("203.0.113.9"), 100, role) == 8
    others = [anonymous(f"198.51.100.{number}") for number in range(12)]
    assert sum(passed(processes[n % 3], other, 2, role) for n, other in enumerate(others)) == 12
    clock.advance(60)
    assert sum(passed(processes[n % 3], other, 2, role) for n, other in enumerate(others)) == 20


@pytest.mark.parametrize("seed", range(3))
def test_processes_together_never_exceed_the_bucket(seed: int) -> None:
    """Processes that know nothing of each other let through what one would: the burst, and what flows in."""
    chance = random.Random(seed)
    clock = Clock()
    processes = [limits(clock, address_query_burst=20, address_queries_a_minute=60) for _ in range(4)]
    here, times = anonymous("198.51.100.1"), []
    for _ in range(200):
        clock.advance(chance.choice([0, 0, 0, 0.2, 5, 30]))
        times += [clock.now] * passes(chance.choice(processes), here)
    assert_within(times, burst=20, per_second=1)
    assert len(times) > 20


def assert_within(times: list[float], *, burst: int, per_second: float) -> None:
    """Check that no span of time has more calls than the burst and what flows in during it."""
    for first, start in enumerate(times):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + (times[last] - start) * per_second + 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_leases_never_exceed_the_documented_bucket(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls with a key, in blocks taken by several processes: at most two minutes' worth, and what flows in."""
    monkeypatch.setattr(rate_limits, "_BLOCKS", 10)
    chance = random.Random(seed)
    clock = Clock()
    processes = [limits(clock, key_calls_a_minute=60) for _ in range(4)]
    caller, times = Caller("agent", frozenset({"reader"}), f"tenant-{uuid4().hex}"), []
    for _ in range(200):
        clock.advance(chance.choice([0, 0, 0.01, 1, 20, LEASE_SECONDS - 1]))
        times += [clock.now] * passed(chance.choice(processes), caller, chance.randint(1, 9))
    assert_within(times, burst=120, per_second=1)
    assert len(times) > 240


def test_key_and_tenant_are_metered_in_blocks(updates: list[str]) -> None:
    """A call with a key costs an update in 30, and one in 120 for its tenant."""
    clock = Clock()
    process = limits(clock)
    tenant = f"tenant-{uuid4().hex}"
    keys = [Caller(f"agent-{number}", frozenset({"reader"}), tenant) for number in range(4)]
    assert sum(passed(process, key, 300) for key in keys) == 1200
    assert len(updates) == 4 * 300 / 30 + 1200 / 120


def test_limits_of_a_key_and_of_a_tenant() -> None:
    clock = Clock()
    process = limits(clock, key_calls_a_minute=10, tenant_calls_a_minute=25)
    tenant = f"tenant-{uuid4().hex}"
    keys = [Caller(f"agent-{number}", frozenset({"writer"}), tenant) for number in range(4)]
    assert [passed(process, key, 20, "writer") for key in keys] == [10, 10, 5, 0]
    with pytest.raises(TooManyRequests, match="of this tenant: at most 25 a minute"):
        process.require_capacity(Caller("agent-4", frozenset({"reader"}), tenant), "reader")
    with pytest.raises(TooManyRequests, match="with this key: at most 10 a minute"):
        process.require_capacity(keys[0], "reader")
    assert passes(process, Caller("agent-0", frozenset({"reader"}), f"tenant-{uuid4().hex}"))
    clock.advance(60)
    assert [passed(process, key, 20) for key in keys] == [10, 10, 5, 0]


def test_zero_refuses_all_strangers(updates: list[str]) -> None:
    process = limits(Clock(), anonymous_submissions_a_minute=0)
    assert not passes(process, anonymous("198.51.100.1"), "writer")
    assert passes(process, anonymous("198.51.100.1"), "reader")


def test_buckets_name_no_address_or_tenant_and_expire() -> None:
    clock = Clock()
    limits(clock).require_capacity(anonymous("198.51.100.1"), "reader")
    limits(clock).require_capacity(Caller("agent", frozenset({"reader"}), "acme-corp"), "reader")
    items = [item for page in Table(config().limits_table).scan("bucket#") for item in page]
    assert len(items) == 4
    assert not any(name in str(items) for name in ("198.51", "acme", "agent"))
    assert all(clock.now < item["expires_at"] < clock.now + 900 for item in items)


def test_without_the_store_only_callers_with_a_key_go_on() -> None:
    def away(_operation: str, _params: Any) -> tuple[int, dict[str, Any]]:
        return 500, {"__type": "InternalServerError"}

    process = limits(Clock())
    with intercept_requests(away):
        process.require_capacity(Caller("agent", frozenset({"reader"}), "acme"), "reader")
        with pytest.raises(Unavailable):
            process.require_capacity(anonymous("198.51.100.1"), "reader")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """Require credentials, with small buckets, and run methods in this process. Yield the clock."""
    clock = Clock()
    small = limits(clock, address_query_burst=3, address_queries_a_minute=1, key_calls_a_minute=2)
    monkeypatch.setenv("KHO_AUTH", "required")
    monkeypatch.setattr(rate_limits, "rate_limits", lambda: small)
    config.cache_clear()
    for remembered in (verifier, cached_verifier):
        remembered.cache_clear()

    def run(function: str, payload: bytes) -> bytes:
        from importlib import import_module

        handler: Callable[[Any, Any], Any] = import_module(function.replace("-", ".")).handler
        return json.dumps(handler(json.loads(payload), None)).encode()

    monkeypatch.setattr(runtime, "functions", run)
    yield clock
    monkeypatch.undo()
    config.cache_clear()


def rpc(method: str, params: Any, id_: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": id_}


def test_each_call_of_a_batch_counts(few: Clock) -> None:
    batch = [rpc("recall-kit/get_experience", {"id": MISSING}, number) for number in range(5)]
    answers = json.loads(jsonrpc.handler(event(batch, path="/jsonrpc"), None)["body"])
    errors = [each["result"]["error"] for each in answers]
    assert sorted(error["code"] for error in errors) == ["NOT_FOUND"] * 3 + ["TOO_MANY_REQUESTS"] * 2
    assert [error["details"]["retry_after_seconds"] for error in errors if "retry" in str(error)] == [60, 60]


def test_refusal_in_each_format(few: Clock) -> None:
    """The route answers 429 with Retry-After, other endpoints their own error with retry_after_seconds."""
    asked = {"id": MISSING}
    statuses = [get_experience.handler(event(asked, path="/recall-kit/get_experience"), None) for _ in range(4)]
    assert [each["statusCode"] for each in statuses] == [404, 404, 404, 429]
    assert statuses[3]["headers"]["retry-after"] == "60"
    body = json.loads(statuses[3]["body"])
    assert (body["success"], body["error"]["code"]) == (False, "TOO_MANY_REQUESTS")
    called = jsonrpc.handler(event(rpc("recall-kit/get_experience", asked), path="/jsonrpc"), None)
    assert json.loads(called["body"])["result"]["error"]["details"]["retry_after_seconds"] == 60
    for revision in REVISIONS:
        message = request_event("tools/call", revision, name="get_experience", arguments=asked)
        result = response_message(recall_kit_mcp.handler(message, None))["result"]
        assert result["isError"]
        assert result["structuredContent"]["error"]["details"]["retry_after_seconds"] == 60
    few.advance(60)
    assert get_experience.handler(event(asked), None)["statusCode"] == 404


def test_refusal_of_a_key_in_each_format(few: Clock, tenant: str) -> None:
    _, text = ApiKeys(Table(config().access_table)).create(tenant, "reader")
    envelope = event({"action": "list_children", "payload": {}}, path="/actions", authorization=f"Bearer {text}")
    answers = [actions.handler(envelope, None) for _ in range(3)]
    assert [each["statusCode"] for each in answers] == [200, 200, 429]
    assert answers[2]["headers"]["retry-after"] == "30"
    assert json.loads(answers[2]["body"])["error"]["code"] == "TOO_MANY_REQUESTS"
    call = event(rpc("agent-data/list_children", {}), path="/jsonrpc", authorization=f"Bearer {text}")
    error = json.loads(jsonrpc.handler(call, None)["body"])["error"]
    assert (error["code"], error["data"]["details"]) == (429, {"retry_after_seconds": 30})


def test_what_is_free_costs_no_token(few: Clock, updates: list[str]) -> None:
    """Health, listings of tools, invalid parameters and refused methods touch no bucket."""
    assert health.handler(event("", "GET", "/health"), None)["statusCode"] == 200
    for revision in REVISIONS:
        assert "result" in response_message(recall_kit_mcp.handler(request_event("tools/list", revision), None))
    for _ in range(5):
        assert get_experience.handler(event({"id": "x", "more": 1}), None)["statusCode"] == 400
        jsonrpc.handler(event([rpc("recall-kit/get_experience", {}), rpc("memory-server/resources/list", {})]), None)
    assert not updates


@pytest.mark.parametrize("method", METHODS)
def test_each_method_may_meter_its_callers(method: str) -> None:
    assert METERING in all_table_actions(catalogue().methods[method].function)


def test_metering_needs_no_other_action(few: Clock, store_actions: set[tuple[str, str]], tenant: str) -> None:
    rate_limits.rate_limits().require_capacity(Caller("agent", frozenset({"reader"}), tenant), "reader")
    rate_limits.rate_limits().require_capacity(anonymous("198.51.100.1"), "reader")
    assert store_actions == {METERING}


def every_kind(process: RateLimits) -> list[bool]:
    """Call once as each kind of caller. Return who passes."""
    kinds: list[Callable[[], None]] = [
        lambda: process.require_capacity(Caller("agent", frozenset({"writer"}), "acme"), "writer"),
        lambda: process.require_capacity(anonymous("198.51.100.7"), "reader"),
        lambda: process.require_capacity(anonymous("198.51.100.7"), "writer"),
        *(partial(process.require_sign_in_capacity, "198.51.100.7", kind) for kind in get_args(SignInRequest)),
        lambda: process.require_grant_capacity("acme#0123456789abcdef"),
        lambda: process.require_unknown_board_capacity("198.51.100.7"),
        lambda: process.require_photo_capacity("acme#camera"),
    ]
    passing = []
    for each in kinds:
        try:
            each()
        except TooManyRequests:
            passing.append(False)
        else:
            passing.append(True)
    return passing


@pytest.mark.parametrize("days", [2, 7, -2])
def test_bucket_of_a_wrong_clock_locks_nobody_out(days: int) -> None:
    """Neither if the clock is set right under a running process, nor before another one starts."""
    clock = Clock()
    clock.advance(days * 86_400)
    running = limits(clock)
    assert all(every_kind(running))
    clock.advance(-days * 86_400)
    assert all(every_kind(limits(clock)))
    assert all(every_kind(running))


def test_bucket_of_a_wrong_clock_is_metered_again() -> None:
    clock = Clock()
    settings = {"address_query_burst": 5, "address_queries_a_minute": 1}
    clock.advance(7 * 86_400)
    assert passed(limits(clock, **settings), anonymous("198.51.100.8"), 9) == 5
    clock.advance(-7 * 86_400)
    assert passed(limits(clock, **settings), anonymous("198.51.100.8"), 9) == 5


def test_bucket_of_a_process_whose_clock_differs_a_little_stays_empty() -> None:
    early, late = Clock(), Clock()
    late.advance(30)
    settings = {"address_query_burst": 5, "address_queries_a_minute": 1}
    assert passed(limits(late, **settings), anonymous("198.51.100.9"), 9) == 5
    assert passed(limits(early, **settings), anonymous("198.51.100.9"), 9) == 0
