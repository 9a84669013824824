"""Settings of every test run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No example fails because it, or the making of its data, took long on a busy machine.
settings.register_profile("any-speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-speed")
