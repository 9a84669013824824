"""Indexing right after a write, so that a query that starts after its answer finds what was written.

A write waits for it, but not for long: whatever is not done by then, the table's stream brings to a worker.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from shared.background import result, submit
from shared.config import config
from shared.rpc.errors import KhoError
from shared.services.document_index import refresh_document
from shared.telemetry import current_correlation_id, internal_errors, logger, seconds_left

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.documents.unit_of_work import UnitOfWork

_EMBEDDED_SECONDS: Final = 12.0
"""An index in this process is never away: whoever waits for it waits for work of their own."""
_SERVER_SECONDS: Final = 5.0
_FIRST_SECONDS: Final = 2.5
"""A server that says nothing for so long is away, or as good as that."""
_REST_SECONDS: Final = 10.0
"""For so long, no other write waits for an index that is away."""
_CHARACTERS: Final = 64 * 1024
"""A longer text takes longer to embed than a write may wait."""


class _IndexAvailability:
    """Whether the index is worth waiting for."""

    def __init__(self) -> None:
        self._away_until = -math.inf

    @property
    def is_away(self) -> bool:
        return time.monotonic() < self._away_until

    def failed(self, how: str) -> None:
        self._away_until = time.monotonic() + _REST_SECONDS
        logger.warning("index", extra={"failure": how})


_index: Final = _IndexAvailability()


def index_immediately(changes: UnitOfWork) -> None:
    """Index what was written, as far as the index is there and takes it quickly."""
    is_remote = bool(config().qdrant_url)
    seconds = min(_SERVER_SECONDS if is_remote else _EMBEDDED_SECONDS, seconds_left())
    if not (changes.written and config().has_index and seconds > 0) or _index.is_away:
        return
    deadline = time.monotonic() + seconds
    answered = threading.Event()
    begun = submit(lambda: _index_all(changes.tenant_id, list(dict.fromkeys(changes.written)), deadline, answered.set))
    if is_remote and not answered.wait(min(_FIRST_SECONDS, seconds)):
        _index.failed("no answer in time")
        return
    with suppress(TimeoutError):
        result(begun, deadline - time.monotonic())


def _index_all(tenant_id: str, document_ids: Sequence[str], deadline: float, answered: Callable[[], object]) -> None:
    """Index one after the other, also where the write no longer waits: to repeat it changes nothing."""
    try:
        with internal_errors(current_correlation_id()):
            for document_id in document_ids:
                if time.monotonic() > deadline:
                    return
                refresh_document(tenant_id, document_id, at_most=_CHARACTERS, on_response=answered)
    except KhoError as error:
        _index.failed(error.code)
    finally:
        answered()
