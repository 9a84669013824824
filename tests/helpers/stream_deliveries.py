"""Deliveries of stream records to workers, and what the workers gave up."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.local.functions import Functions
from infra.local.streams import StreamReader
from infra.local.template import load
from shared.aws import dead_letters
from shared.platform.config import config
from tests.helpers.limits import LONG_SECONDS
from tests.helpers.wait import CEILING_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shared.aws.dead_letters import DeadLetter

LATE_SECONDS = 60.0
"""The age of a record that was delivered before, or that waited."""


def stream_record(pk: str, sk: str, *, number: int = 1, event: str = "INSERT", age: float = 0.0) -> dict[str, Any]:
    """Return a record as Lambda delivers it."""
    keys = {"pk": {"S": pk}, "sk": {"S": sk}}
    change = {"Keys": keys, "SequenceNumber": str(number), "ApproximateCreationDateTime": time.time() - age}
    return {"eventID": f"{number:032}", "eventName": event, "dynamodb": change}


def deliver(handler: Callable[[Any, None], Any], *records: dict[str, Any]) -> list[str]:
    """Deliver records to a worker. Return the numbers of those that the stream delivers again."""
    answer = handler({"Records": list(records)}, None)
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def letters_of(tenant: str) -> list[DeadLetter]:
    """Return the dead letters of a tenant."""
    return [each for each in dead_letters.read(Path(config().dead_letters)) if tenant in each.pk]


@contextmanager
def running_worker(
    function: str, tenant: str, store: str, folder: Path, functions: Callable[[str, bytes], bytes] | None = None
) -> Iterator[None]:
    """Deliver the records of a tenant to a worker, as `kho serve` does. By default, it runs in this process."""
    [trigger] = [each for each in load().streams if each.function == function]
    for pattern in trigger.filters:
        assert "pk" not in pattern.get("dynamodb", {}).get("Keys", {})
    of_tenant = [_of_tenant(pattern, tenant) for pattern in trigger.filters]
    patient = {name: replace(each, timeout=LONG_SECONDS) for name, each in load().functions.items()}
    run: Any = functions or Functions(patient)
    reader = StreamReader(replace(trigger, filters=of_tenant), store, run, folder)
    reader.start()
    try:
        yield
    finally:
        reader.stop()
        reader.join(CEILING_SECONDS)
        assert not reader.is_alive()


def _of_tenant(pattern: dict[str, Any], tenant: str) -> dict[str, Any]:
    keys = {**pattern["dynamodb"]["Keys"], "pk": {"S": [{"prefix": f"{tenant}#"}]}}
    return {**pattern, "dynamodb": {**pattern["dynamodb"], "Keys": keys}}
