"""Interception of requests to DynamoDB: tests observe them, change them, or answer them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shared.aws.signed_client import SignedServiceClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Answer = tuple[int, Mapping[str, str], bytes]

Refusal = tuple[int, dict[str, Any]]
"""A status and DynamoDB's error body."""


@contextmanager
def intercept_requests(
    look: Callable[[str, Any], Refusal | None], heard: Callable[[str, Any], None] = lambda _operation, _answer: None
) -> Iterator[None]:
    """Pass each request to `look`, which may change or answer it, and each answer to `heard`, which may change it."""
    real = SignedServiceClient.request

    def request(
        service: SignedServiceClient, method: str, path: str, body: bytes, headers: Mapping[str, str], *query: str
    ) -> Answer:
        target, _, operation = headers.get("x-amz-target", "").partition(".")
        if not target.startswith("DynamoDB"):
            return real(service, method, path, body, headers, *query)
        params = json.loads(body)
        refusal = look(operation, params)
        if refusal:
            return refusal[0], {}, json.dumps(refusal[1]).encode()
        status, _, raw = real(service, method, path, json.dumps(params).encode(), headers)
        answer = json.loads(raw)
        heard(operation, answer)
        return status, {}, json.dumps(answer).encode()

    SignedServiceClient.request = request  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        SignedServiceClient.request = real  # type: ignore[method-assign]


def answer_operation(operation: str, answer: Callable[[Any], Refusal | None]) -> Callable[[str, Any], Refusal | None]:
    """Return an interceptor for one operation only."""
    return lambda name, params: answer(params) if name == operation else None
