"""Indexing right after a write, so that a query that starts after the response finds the change.

The write waits for the index, but not for long. Unfinished work is done by a worker, to which the table's stream
delivers the change.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from shared.documents.index import refresh_document
from shared.platform.background import result, submit
from shared.platform.config import config
from shared.platform.telemetry import current_correlation_id, logger, seconds_left
from shared.rpc.errors import KhoError, OutOfTime, Unavailable
from shared.rpc.observation import internal_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.documents.unit_of_work import UnitOfWork

_EMBEDDED_SECONDS: Final = 12.0
"""An index in this process is always available, so a write waits longer for it."""
_SERVER_SECONDS: Final = 5.0
_FIRST_RESPONSE_SECONDS: Final = 2.5
"""A server without a response within this time counts as unavailable."""
_PAUSE_SECONDS: Final = 10.0
"""After a failure, other writes do not wait for the index for this long."""
_MAX_CHARACTERS: Final = 64 * 1024
"""Longer texts take longer to embed than a write may wait."""


class _IndexAvailability:
    """A circuit breaker: after a failure, writes do not wait for the index for a while."""

    def __init__(self) -> None:
        self._paused_until = -math.inf

    @property
    def is_paused(self) -> bool:
        return time.monotonic() < self._paused_until

    def failed(self, failure: str) -> None:
        self._paused_until = time.monotonic() + _PAUSE_SECONDS
        logger.warning("index", extra={"failure": failure})


_index: Final = _IndexAvailability()


def index_immediately(work: UnitOfWork) -> None:
    """Index written documents, if the index responds in time."""
    is_remote = bool(config().qdrant_url)
    seconds = min(_SERVER_SECONDS if is_remote else _EMBEDDED_SECONDS, seconds_left())
    if not (work.written and config().has_index and seconds > 0) or _index.is_paused:
        return
    deadline = time.monotonic() + seconds
    responded = threading.Event()
    task = submit(lambda: _index_all(work.tenant_id, list(dict.fromkeys(work.written)), deadline, responded.set))
    if is_remote and not responded.wait(min(_FIRST_RESPONSE_SECONDS, seconds)):
        _index.failed("no answer in time")
        return
    with suppress(TimeoutError):
        result(task, deadline - time.monotonic())


def _index_all(tenant_id: str, document_ids: Sequence[str], deadline: float, responded: Callable[[], object]) -> None:
    """Index the documents one by one, even if the write no longer waits. The work is idempotent."""
    try:
        with internal_errors(current_correlation_id()):
            for document_id in document_ids:
                if time.monotonic() > deadline:
                    return
                refresh_document(tenant_id, document_id, max_characters=_MAX_CHARACTERS, on_response=responded)
    except (Unavailable, OutOfTime) as error:
        _index.failed(error.code)
    except KhoError as error:  # of one document: other writes wait for the index as before
        logger.warning("not indexed yet", extra={"failure": error.code})
    finally:
        responded()
