"""The TTL cache: expiry and eviction."""

from __future__ import annotations

from shared.platform.ttl_cache import TtlCache


def test_entries_expire() -> None:
    now = [100.0]
    cache: TtlCache[str, int] = TtlCache(10, clock=lambda: now[0])
    assert cache.put("usual", 1) == 1
    cache.put("early", 2, expires_at=105.0)
    cache.put("late", 3, expires_at=1_000.0)
    now[0] = 105.0
    assert [cache.get(key) for key in ("usual", "early", "late")] == [1, None, 3]
    now[0] = 110.0
    assert [cache.get(key) for key in ("usual", "late")] == [None, None]


def test_oldest_entries_are_evicted() -> None:
    cache: TtlCache[int, int] = TtlCache(10, capacity=2)
    for key in (1, 2, 1, 3):
        cache.put(key, key)
    assert [cache.get(key) for key in (1, 2, 3)] == [1, None, 3]


def test_deleted_entries_are_gone() -> None:
    cache: TtlCache[int, int] = TtlCache(10)
    for key in (1, 2, 3):
        cache.put(key, key)
    cache.delete(1)
    cache.delete(4)
    assert [cache.get(key) for key in (1, 2)] == [None, 2]
    cache.clear()
    assert cache.get(2) is None


def test_entries_do_not_outlive_a_step_back_of_the_clock() -> None:
    now = [100.0]
    cache: TtlCache[str, int] = TtlCache(10, clock=lambda: now[0])
    cache.put("key", 1)
    now[0] = 90.0
    assert cache.get("key") is None
    cache.put("key", 2)
    assert cache.get("key") == 2
