"""Rate limits: of anonymous callers by source address and in total, of all others by key and by tenant.

A valid credential never counts in a total: strangers can exhaust it. So a code, token, key or board is looked up first.

A bucket is one item, and taking tokens one conditional update of it; a second one is needed if this process does not
know that others have used the bucket. A bucket that is known to be empty costs no update.

Buckets of keys and tenants are large: a process takes tokens in blocks, and drops those that it does not use within
LEASE_SECONDS. The stored bucket holds less than the documented one by what flows in meanwhile, so that never more calls
pass than documented.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from shared.access.keys import bucket as bucket_key
from shared.aws.dynamodb import ConditionFailed, Table, Write
from shared.platform.clock import SKEW_SECONDS
from shared.platform.config import config
from shared.platform.token_bucket import MICROSECONDS, BucketSize
from shared.platform.ttl_cache import TtlCache
from shared.rpc.caller import ANONYMOUS
from shared.rpc.errors import TooManyRequests, Unavailable

if TYPE_CHECKING:
    from shared.access.models import Clock
    from shared.platform.config import Config
    from shared.rpc.caller import Caller, Role

SignInRequest = Literal["registrations", "sign-in pages", "sign-in requests"]
"""A kind of request that a stranger makes to OAuth's endpoints. The last one has no valid code, token or page."""
_Call = Literal["queries", "submissions"]

LEASE_SECONDS: Final = 60
"""The bucket of a key or a tenant is documented as two minutes' worth: one stored, one in leases."""
_BLOCKS: Final = 1000
"""A block is this part of a bucket: even that many processes with a lease each leave others their share."""
_RETENTION_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class _Bucket:
    name: str
    size: BucketSize
    block: int
    exceeded: str
    """The message to the caller of a call that finds the bucket empty."""

    def latest(self, now: int) -> int:
        """Return the latest time of being full again that is believed now: that of an empty bucket, and the skew."""
        return self.size.latest(now, tokens=0) + SKEW_SECONDS * MICROSECONDS

    def believed(self, full_at: int, now: int) -> int:
        """Return the time of being full again, 0 if a clock set it that was ahead."""
        return full_at if full_at <= self.latest(now) else 0


@dataclass(slots=True)
class _Lease:
    """Tokens of a bucket that this process has taken and not used."""

    tokens: int


class RateLimits:
    """The buckets of all callers, with the leases that this process holds."""

    def __init__(self, table: Table, settings: Config, clock: Clock = time.time) -> None:
        self._table = table
        self._settings = settings
        self._clock = clock
        self._full_at: TtlCache[str, int] = TtlCache(LEASE_SECONDS, clock=clock)
        self._leases: TtlCache[str, _Lease] = TtlCache(LEASE_SECONDS, clock=clock)
        self._lock = threading.Lock()

    def require_capacity(self, caller: Caller, role: Role) -> None:
        """Count a call of a method for `role`. Raise TooManyRequests if a bucket of the caller is empty."""
        try:
            for bucket in self._anonymous(caller, role) if caller == ANONYMOUS else self._with_key(caller, role):
                self._take(bucket)
        except Unavailable:
            # Reads go on while the store takes no writes, as on a full disk.
            if caller == ANONYMOUS:
                raise

    def require_sign_in_capacity(self, source: str, kind: SignInRequest) -> None:
        """Count a stranger's request to an OAuth endpoint. Raise TooManyRequests if a bucket of its kind is empty."""
        settings = self._settings
        own, total = self._sign_in_size, settings.sign_ins_a_minute
        if kind == "registrations":
            own = BucketSize(settings.address_registration_burst, settings.address_registrations_a_minute)
            total = settings.registrations_a_minute
        for bucket in _of_address(kind, source, own, total, "from all addresses"):
            self._take(bucket)

    def require_grant_capacity(self, grant: str) -> None:
        """Count a use of a grant's code or refresh token. Raise TooManyRequests if the grant's bucket is empty."""
        size = self._sign_in_size
        exceeded = f"Too many token requests of this grant: at most {size.a_minute} a minute, {size.capacity} at once."
        self._take(_Bucket(f"grant#{grant}", size, 1, exceeded))

    def require_unknown_board_capacity(self, source: str) -> None:
        """Count a request of an unclaimed board or without a token. Raise TooManyRequests if a bucket is empty."""
        settings = self._settings
        own = BucketSize(settings.address_check_in_burst, settings.address_check_ins_a_minute)
        kind, total = "requests of unknown boards", settings.check_ins_a_minute
        for bucket in _of_address(kind, source, own, total, "from all addresses"):
            self._take(bucket)

    def require_photo_capacity(self, device: str) -> None:
        """Count a photo of a device, named with its tenant. Raise TooManyRequests if its bucket is empty."""
        size = BucketSize(self._settings.device_photo_burst, self._settings.device_photos_a_minute)
        exceeded = f"Too many photos of this device: at most {size.a_minute} a minute, {size.capacity} at once."
        self._take(_Bucket(f"photos#{device}", size, 1, exceeded))

    @property
    def _sign_in_size(self) -> BucketSize:
        return BucketSize(self._settings.address_sign_in_burst, self._settings.address_sign_ins_a_minute)

    def _anonymous(self, caller: Caller, role: Role) -> list[_Bucket]:
        settings, kind = self._settings, _kind(role)
        total = settings.anonymous_queries_a_minute if kind == "queries" else settings.anonymous_submissions_a_minute
        return _of_address(kind, caller.source, self._address_size(kind), total, "from all callers without a key")

    def _with_key(self, caller: Caller, role: Role) -> list[_Bucket]:
        settings, key = self._settings, f"{caller.tenant_id}#{caller.sub}"
        buckets = [
            _leased(f"key#{key}", settings.key_calls_a_minute, "with this key"),
            _leased(f"tenant#{caller.tenant_id}", settings.tenant_calls_a_minute, "of this tenant"),
        ]
        if caller.holds(role):
            return buckets
        # Only an anonymous method takes a caller without its role, such as a reader's submission: at an address's pace.
        kind = _kind(role)
        own = self._address_size(kind)
        exceeded = f"Too many {kind} with this key: at most {own.a_minute} a minute, {own.capacity} at once."
        return [_Bucket(f"{kind}#key#{key}", own, 1, exceeded), *buckets]

    def _address_size(self, kind: _Call) -> BucketSize:
        settings = self._settings
        if kind == "queries":
            return BucketSize(settings.address_query_burst, settings.address_queries_a_minute)
        return BucketSize(settings.address_submission_burst, settings.address_submissions_a_minute)

    def _take(self, bucket: _Bucket) -> None:
        """Take a token from this process's lease, or a block of them from the stored bucket."""
        with self._lock:
            lease = self._leases.get(bucket.name)
            if lease and lease.tokens:
                lease.tokens -= 1
                return
        pause = self._update(bucket)
        if pause:
            raise TooManyRequests(bucket.exceeded, retry_after_seconds=math.ceil(pause))
        if bucket.block > 1:
            self._leases.put(bucket.name, _Lease(bucket.block - 1))

    def _update(self, bucket: _Bucket) -> float:
        """Take a block from the stored bucket. Return 0, or the seconds until it holds one."""
        now = round(self._clock() * MICROSECONDS)
        full_at = bucket.believed(self._full_at.get(bucket.name) or 0, now)
        while not (pause := bucket.size.pause(full_at, now, bucket.block)):
            try:
                full_at = self._table.write(_taking(bucket, full_at, now))["full_at"]
            except ConditionFailed as failed:
                full_at = bucket.believed(failed.item.get("full_at", 0), now)  # others have used it
                self._full_at.put(bucket.name, full_at)
            else:
                self._full_at.put(bucket.name, full_at)
                return 0
        return pause


def _kind(role: Role) -> _Call:
    return "queries" if role == "reader" else "submissions"


def _of_address(kind: str, source: str, own: BucketSize, total: int, origin: str) -> list[_Bucket]:
    """Return the buckets of the address and of all addresses, the latter last: a flood must not empty it."""
    from_here = f"Too many {kind} from this address: at most {own.a_minute} a minute, {own.capacity} at once."
    from_all = f"Too many {kind} {origin} together: at most {total} a minute."
    return [
        _Bucket(f"{kind}#address#{source}", own, 1, from_here),
        _Bucket(f"{kind}#total", BucketSize(total, total), 1, from_all),
    ]


def _leased(name: str, a_minute: int, calls: str) -> _Bucket:
    exceeded = f"Too many calls {calls}: at most {a_minute} a minute."
    return _Bucket(name, BucketSize(a_minute, a_minute), max(1, a_minute // _BLOCKS), exceeded)


def _taking(bucket: _Bucket, full_at: int, now: int) -> Write:
    """Return the update that takes a block from a bucket which was last seen to be full again at `full_at`."""
    pk, sk = bucket_key(bucket.name)
    cost = bucket.block * bucket.size.interval
    latest = bucket.size.latest(now, bucket.block)
    values = {":expiry": max(latest + cost, now) // MICROSECONDS + _RETENTION_SECONDS, ":now": now}
    if full_at <= now:
        change, condition = ":full", "attribute_not_exists(full_at) OR full_at <= :now OR full_at > :believed"
        values |= {":full": now + cost, ":believed": bucket.latest(now)}
    else:
        change, condition = "full_at + :cost", "full_at > :now AND full_at <= :latest"
        values |= {":cost": cost, ":latest": latest}
    return Write(
        "Update",
        {"pk": pk, "sk": sk},
        expression=f"SET full_at = {change}, expires_at = :expiry",
        condition=condition,
        values=values,
        returns_refusing_item=True,
    )


@cache
def rate_limits() -> RateLimits:
    """Return this process's rate limits."""
    return RateLimits(Table(config().limits_table), config())
