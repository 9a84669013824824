"""Log records on every version of Python that Kho supports."""

from __future__ import annotations

from shared.platform.telemetry import logger


def test_log_handlers_have_the_lock_that_logging_enters() -> None:
    # Python 3.13 enters it where earlier versions ask whether there is one.
    assert logger.registered_handler.lock is not None
