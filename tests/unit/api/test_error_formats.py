"""Headers of errors: a caller learns whether, and when, to call again."""

from __future__ import annotations

import pytest

from api.error_formats import http_headers
from shared.rpc.errors import (
    Conflict,
    InvalidParams,
    KhoError,
    MethodNotAllowed,
    NotSignedIn,
    TooManyRequests,
    Unavailable,
)


@pytest.mark.parametrize(
    ("error", "headers"),
    [
        (TooManyRequests(retry_after_seconds=60), {"retry-after": "60"}),
        (TooManyRequests(), {"retry-after": "1"}),
        (Unavailable(), {"retry-after": "1"}),
        (Conflict(code="IN_PROGRESS"), {"retry-after": "1"}),
        (Conflict(), {}),
        (InvalidParams(), {}),
        (NotSignedIn(), {"www-authenticate": "Bearer"}),
        (MethodNotAllowed("GET", "POST"), {"allow": "GET, POST"}),
    ],
    ids=lambda each: each.code if isinstance(each, KhoError) else None,
)
def test_retryable_errors_say_when_to_call_again(error: KhoError, headers: dict[str, str]) -> None:
    assert http_headers(error) == headers
