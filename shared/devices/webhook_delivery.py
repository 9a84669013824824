"""Delivery of the outbox: one run a tenant at a time, the events of each device in order, devices side by side.

A record of the table's stream wakes the delivery of its tenant, and a schedule wakes those that have to retry. A device
whose event was refused waits, and the others go on. After three failures in a row without a success, the receiver is
taken for dead, and the whole tenant waits. A tenant's run is an invocation of its own, so none delays another.
"""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from shared.aws import dead_letters
from shared.aws.dead_letters import DeadLetter
from shared.aws.delivery_attempts import MAX_ATTEMPTS, DeliveryAttempts
from shared.aws.dynamodb import ConditionFailed, Keys, Write
from shared.devices import keys
from shared.devices.webhooks import RETRY_SECONDS, OutboxEvent, Webhooks, send_event, webhook_client
from shared.platform.clock import iso_time, lasts, latest
from shared.platform.public_address import AddressFailed, AddressRefused
from shared.platform.telemetry import count, current_correlation_id, logger
from shared.rpc.errors import Internal, KhoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from shared.aws.dynamodb import Item, Table
    from shared.devices.webhooks import Webhook
    from shared.platform.public_address import PublicClient

METHOD: Final = "workers/deliver_webhooks"
_SETTLE_MS: Final = 1_000
"""Functions store the events of a device concurrently: a younger event may be stored first."""
_LANES: Final = 8
"""The devices whose events are sent at the same time."""
_PAGE: Final = 100
_LEASE_SECONDS: Final = 90.0
"""Longer than a round: `_ROUND_SECONDS`, and the time limit of a request."""
_ROUND_SECONDS: Final = 30.0
_FIRST_RETRY_SECONDS: Final = 10.0
_MAX_RETRY_SECONDS: Final = 300.0
_MAX_DOUBLINGS: Final = 5
_DEAD_AFTER: Final = 3
"""Failures in a row, without a success, after which nothing is sent in this run."""

_RETRY_IS_DUE: Final = "(attribute_not_exists(retry_at) OR retry_at <= :now OR retry_at > :latest_retry)"
_LEASE_IS_FREE: Final = (
    "(attribute_not_exists(run_id) OR run_id = :run OR lease_until < :now OR lease_until > :latest_lease)"
)
_MAY_RUN: Final = f"attribute_exists(pk) AND {_RETRY_IS_DUE} AND {_LEASE_IS_FREE}"

_stopping: Final = threading.Event()


def stop_deliveries() -> None:
    """End the deliveries of this process after the requests in progress."""
    _stopping.set()


@dataclass(slots=True)
class _Round:
    """The tally of one pass over the devices whose events wait."""

    ends_at: float
    next_at: float | None = None
    """The earliest time at which something is left to do."""
    delivered: int = 0
    dropped: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    unreachable: int = 0
    """Failures without an answer of the receiver."""
    problem: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def succeed(self) -> None:
        with self.lock:
            self.delivered += 1
            self.failures_in_a_row = 0

    def fail(self, problem: str, *, refused: bool) -> None:
        with self.lock:
            self.failures += 1
            self.unreachable += not refused
            self.failures_in_a_row += 1
            self.problem = problem

    def drop(self, events: int) -> None:
        with self.lock:
            self.dropped += events

    def schedule(self, at: float) -> None:
        with self.lock:
            self.next_at = at if self.next_at is None else min(self.next_at, at)

    @property
    def is_dead(self) -> bool:
        """Return True if the receiver counts as dead in this round."""
        return self.failures_in_a_row >= _DEAD_AFTER

    @property
    def has_failed(self) -> bool:
        """Return True if the receiver was not reached once, or refused all that was sent."""
        return self.delivered == 0 and (self.unreachable > 0 or self.is_dead)


class WebhookDelivery:
    """The delivery of one tenant's events."""

    def __init__(  # noqa: PLR0913 - limits and clocks are parameters
        self,
        table: Table,
        tenant_id: str,
        client: PublicClient | None = None,
        *,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], object] = _stopping.wait,
        seconds: float = 600.0,
    ) -> None:
        self._table = table
        self._tenant_id = tenant_id
        self._client = client or webhook_client()
        self._clock = clock
        self._pause = pause
        self._seconds = seconds
        self._webhooks = Webhooks(table, tenant_id)
        self._partition = keys.webhook(tenant_id)
        self._run_id = secrets.token_hex(8)

    def run(self) -> None:
        """Deliver events until none waits, the receiver is dead, or the time is over. One run is active at a time."""
        ends_at = self._clock() + self._seconds
        while (state := self._lease()) is not None:
            webhook = self._webhooks.find()
            if webhook is None:
                self._purge()
                if self._end(state):
                    return
                continue
            tally = self._round(webhook)
            self._record_outcome(tally)
            if tally.has_failed:
                failures = int(state.get("failures", 0)) + 1
                retry_at = self._clock() + _backoff(failures)
                self._release(retry_at, failures=failures, retry_at=retry_at)
                return
            is_over = _stopping.is_set() or self._clock() >= ends_at
            if tally.next_at is not None and (is_over or tally.next_at - self._clock() > _SETTLE_MS / 1000):
                self._release(self._clock() if is_over else tally.next_at)
                if is_over or not self._was_woken(state):
                    return
            elif tally.next_at is not None:
                self._pause(max(0.0, tally.next_at - self._clock()))
            elif self._end(state):
                return

    def _lease(self) -> Item | None:
        """Take or renew the right to deliver. Return None if another run has it, or the receiver is left alone now."""
        now, key = self._clock(), self._state_key()
        values = {
            ":run": self._run_id,
            ":until": _ms(now + _LEASE_SECONDS),
            ":now": _ms(now),
            ":latest_retry": _ms(latest(now, _MAX_RETRY_SECONDS)),
            ":latest_lease": _ms(latest(now, _LEASE_SECONDS)),
        }
        try:
            return self._table.write(Write("Update", key, "SET run_id = :run, lease_until = :until", _MAY_RUN, values))
        except ConditionFailed:
            return None

    def _release(self, due_at: float, *, failures: int = 0, retry_at: float = 0) -> None:
        """Give up the right to deliver until `due_at`. With a `retry_at`, the receiver is left alone until then."""
        values = {":run": self._run_id, ":due": _ms(due_at), ":failures": failures, ":retry": _ms(retry_at)}
        expression = "SET due_at = :due, failures = :failures, retry_at = :retry REMOVE run_id, lease_until"
        self._write(Write("Update", self._state_key(), expression, "run_id = :run", values))

    def _end(self, state: Item) -> bool:
        """Remove the tenant from those whose events wait, unless a new event has woken it meanwhile."""
        values = {":run": self._run_id, ":stamp": state["stamp"]}
        return self._write(Write("Delete", self._state_key(), "", "run_id = :run AND stamp = :stamp", values))

    def _was_woken(self, state: Item) -> bool:
        item = self._table.get(keys.WEBHOOKS, self._tenant_id)
        return item is not None and item["stamp"] != state["stamp"]

    def _round(self, webhook: Webhook) -> _Round:
        """Send the events of each device whose time has come."""
        tally = _Round(self._clock() + _ROUND_SECONDS)
        with ThreadPoolExecutor(_LANES, thread_name_prefix="webhook") as lanes:
            running = [
                lanes.submit(copy_context().run, self._lane, webhook, waiting, tally) for waiting in self._waiting()
            ]
            for lane in running:
                lane.result()
        count(webhook_events_delivered=tally.delivered, webhook_events_dropped=tally.dropped)
        return tally

    def _lane(self, webhook: Webhook, waiting: Item, tally: _Round) -> None:
        """Send the events of one device in order, up to the first failure."""
        due_at = float(waiting.get("due_at", 0)) / 1000
        if lasts(due_at, self._clock(), _MAX_RETRY_SECONDS):
            tally.schedule(due_at)
            return
        device_id = waiting["sk"].removeprefix(keys.WAITING)
        events = self._events(device_id)
        for event in events:
            try:
                goes_on = self._deliver(webhook, waiting, event, tally)
            except KhoError:
                raise
            except Exception:
                logger.exception("crashed")
                goes_on = self._fail(waiting, event, tally)
            if not goes_on:
                return
        if len(events) == _PAGE:
            tally.schedule(self._clock())
            return
        values = {":latest": waiting["latest"]}
        if not self._write(Write("Delete", self._waiting_key(device_id), "", "latest = :latest", values)):
            tally.schedule(self._clock())  # a new event has come meanwhile

    def _deliver(self, webhook: Webhook, waiting: Item, item: Item, tally: _Round) -> bool:
        """Send an event, or drop it if it is too old. Return False if the device's events have to wait."""
        event = OutboxEvent(item["pk"], item["sk"], item["body"], item.get("webhook_id", ""))
        now = self._clock()
        is_own = event.webhook_id in ("", webhook.id)
        if not is_own or event.at_ms < (now - RETRY_SECONDS) * 1000:
            self._delete(item)
            tally.drop(int(is_own))
            return True
        settled_at = (event.at_ms + _SETTLE_MS) / 1000
        is_settled = not lasts(settled_at, now, _SETTLE_MS / 1000)
        if not is_settled or tally.is_dead or now >= tally.ends_at or _stopping.is_set():
            tally.schedule(settled_at)
            return False
        problem, refused = self._send(webhook, event)
        if problem:
            tally.fail(problem, refused=refused)
            self._postpone(waiting, tally, refused=refused)
            return False
        self._delete(item)
        tally.succeed()
        waiting["attempts"] = 0
        return True

    def _fail(self, waiting: Item, item: Item, tally: _Round) -> bool:
        """Count a failure of an event itself. After three of them, give it up and return True."""
        name = f"{METHOD}#{item['pk']}#{item['sk']}"
        if DeliveryAttempts(name).fail() < MAX_ATTEMPTS:
            self._postpone(waiting, tally, refused=True)
            return False
        code, keys_ = Internal.code, {"pk": item["pk"], "sk": item["sk"]}
        dead_letters.send(DeadLetter(item["sk"], METHOD, code, current_correlation_id(), "INSERT", **keys_))
        self._delete(item)
        tally.drop(1)
        return True

    def _delete(self, item: Item) -> None:
        self._table.write(Write("Delete", {"pk": item["pk"], "sk": item["sk"]}))

    def _send(self, webhook: Webhook, event: OutboxEvent) -> tuple[str, bool]:
        """Send an event. Return the problem, if any, and whether the receiver itself refused this event."""
        try:
            status = send_event(self._client, webhook, event.id, event.body, self._clock())
        except (AddressFailed, AddressRefused) as error:
            return f"The address {error}.", False
        return ("", False) if 200 <= status < 300 else (f"The receiver answered {status}.", True)

    def _postpone(self, waiting: Item, tally: _Round, *, refused: bool) -> None:
        """Make a device wait: longer each time if the receiver refuses its event."""
        attempts = int(waiting.get("attempts", 0)) + refused
        due_at = self._clock() + (_backoff(attempts) if refused else _FIRST_RETRY_SECONDS)
        values = {":due": _ms(due_at), ":attempts": attempts}
        key = {"pk": waiting["pk"], "sk": waiting["sk"]}
        self._write(Write("Update", key, "SET due_at = :due, attempts = :attempts", "attribute_exists(pk)", values))
        tally.schedule(due_at)

    def _record_outcome(self, tally: _Round) -> None:
        """Record failures and dropped events, for `webhooks/get` and the log."""
        key = {"pk": self._partition, "sk": keys.WEBHOOK_STATUS}
        now = iso_time(self._clock())
        if tally.failures:
            logger.warning("webhook failing", extra={"tenant_id": self._tenant_id, "failure": tally.problem})
            failing = "SET failing_since = if_not_exists(failing_since, :now), problem = :problem"
            self._table.write(Write("Update", key, failing, "", {":now": now, ":problem": tally.problem}))
        elif tally.delivered and tally.next_at is None and self._webhooks.status().problem:
            self._table.write(Write("Update", key, "REMOVE failing_since, problem"))
        if tally.dropped:
            logger.error("webhook events dropped", extra={"tenant_id": self._tenant_id, "events": tally.dropped})
            values = {":now": now, ":dropped": tally.dropped}
            self._table.write(Write("Update", key, "SET dropped_at = :now ADD dropped :dropped", "", values))

    def _purge(self) -> None:
        """Delete the events of a webhook that was deleted."""
        for waiting in self._waiting():
            device_id = waiting["sk"].removeprefix(keys.WAITING)
            self._table.delete_range(keys.outbox(self._tenant_id, device_id), Keys.beginning(keys.EVENT))
            self._table.write(Write("Delete", self._waiting_key(device_id)))

    def _waiting(self) -> Iterator[Item]:
        for page in self._table.query(self._partition, Keys.beginning(keys.WAITING)):
            yield from page

    def _events(self, device_id: str) -> list[Item]:
        """Return the oldest events of a device."""
        partition = keys.outbox(self._tenant_id, device_id)
        return [item for page in self._table.query(partition, Keys.beginning(keys.EVENT), limit=_PAGE) for item in page]

    def _write(self, write: Write) -> bool:
        """Write, and return False if the condition does not hold."""
        try:
            self._table.write(write)
        except ConditionFailed:
            return False
        return True

    def _state_key(self) -> Item:
        return {"pk": keys.WEBHOOKS, "sk": self._tenant_id}

    def _waiting_key(self, device_id: str) -> Item:
        return {"pk": self._partition, "sk": f"{keys.WAITING}{device_id}"}


def wake(table: Table, events: Iterable[tuple[str, str]], at_ms: int) -> list[str]:
    """Mark the devices of new events as waiting. Return the tenants whose delivery is to be started."""
    latest: dict[tuple[str, str], str] = {}
    for pk, sk in events:
        place = keys.outbox_of(pk)
        latest[place] = max(sk, latest.get(place, ""))
    for (tenant_id, device_id), sk in latest.items():
        key = {"pk": keys.webhook(tenant_id), "sk": f"{keys.WAITING}{device_id}"}
        table.write(Write("Update", key, "SET latest = :latest", "", {":latest": f"{sk}#{secrets.token_hex(4)}"}))
    tenants = dict.fromkeys(tenant_id for tenant_id, _ in latest)
    return [tenant_id for tenant_id in tenants if _mark_due(table, tenant_id, at_ms)]


def _mark_due(table: Table, tenant_id: str, at_ms: int) -> bool:
    """Mark a tenant's new events as due. Return False if its run is active, or its receiver is left alone now."""
    values = {":stamp": secrets.token_hex(8), ":now": at_ms}
    state = table.write(
        Write("Update", {"pk": keys.WEBHOOKS, "sk": tenant_id}, "SET stamp = :stamp, due_at = :now", "", values)
    )
    return _may_start(state, at_ms)


def due_tenants(table: Table, at_ms: int) -> list[str]:
    """Return the tenants whose events are to be sent again now."""
    pages = table.query(keys.WEBHOOKS, Keys.after(" "))
    return [item["sk"] for page in pages for item in page if _is_due(item, at_ms) and _may_start(item, at_ms)]


def _is_due(state: dict[str, Any], at_ms: int) -> bool:
    return not lasts(float(state["due_at"]) / 1000, at_ms / 1000, _MAX_RETRY_SECONDS)


def _may_start(state: dict[str, Any], at_ms: int) -> bool:
    at = at_ms / 1000
    is_running = "run_id" in state and lasts(float(state["lease_until"]) / 1000, at, _LEASE_SECONDS)
    return not is_running and not lasts(float(state.get("retry_at", 0)) / 1000, at, _MAX_RETRY_SECONDS)


def _backoff(failures: int) -> float:
    return min(_FIRST_RETRY_SECONDS * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), _MAX_RETRY_SECONDS)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
