"""Dead letters: records that a worker gave up on, in the dead-letter queue, or on one machine in a file.

A letter names the record and the reason, never contents. It may be sent twice; its id is the record's.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from shared.platform.clock import now
from shared.platform.config import config
from shared.platform.http import ConnectionFailed
from shared.platform.telemetry import logger
from shared.rpc.errors import Unavailable

if TYPE_CHECKING:
    from shared.aws.signed_client import SignedServiceClient

CRASHED: Final = "CRASHED"
"""The reason of a record whose function ended without an answer: out of memory, out of time, or a crash."""
EXPIRED: Final = "EXPIRED"
"""The reason of a record that was retried for as long as its stream keeps it."""
FILE_NAME: Final = "dead-letters.jsonl"
_CONNECT_SECONDS: Final = 2
_READ_SECONDS: Final = 5
_MAX_FILE_BYTES: Final = 10_000_000
"""Some 25,000 letters. Later ones are in the log alone."""
_writing: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was given up, and the reason."""

    id: str
    method: str
    code: str
    correlation_id: str
    event: str = ""
    pk: str = ""
    sk: str = ""
    at: str = field(default_factory=now)


def send(letter: DeadLetter) -> None:
    """Store a letter. Raise `Unavailable` if that fails: the record is then tried again."""
    logger.error("dead letter", extra={"letter": asdict(letter)})
    text, place = json.dumps(asdict(letter), ensure_ascii=False), config().dead_letters
    if place.startswith(("https://", "http://")):
        _send_to_queue(place, text)
    elif place:
        _append(Path(place), text)


def read(file: Path) -> list[DeadLetter]:
    """Return the letters of a file, each once."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    letters: dict[tuple[str, str], DeadLetter] = {}
    for line in lines:
        with suppress(ValueError, TypeError):  # a line of which the end is missing
            letter = DeadLetter(**json.loads(line))
            letters[letter.method, letter.id] = letter
    return list(letters.values())


def erase(tenant_id: str) -> None:
    """Remove a tenant's letters from the file of one machine. A queue keeps them for fourteen days."""
    file = Path(config().dead_letters)
    if not file.is_file():
        return
    own = f'"pk": "{tenant_id}#'
    new = file.with_suffix(".new")
    with _writing:
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        new.write_text("".join(line for line in lines if own not in line), encoding="utf-8")
        new.replace(file)


def _append(file: Path, text: str) -> None:
    try:
        with _writing, file.open("a", encoding="utf-8") as opened:
            if opened.tell() < _MAX_FILE_BYTES:
                opened.write(f"{text}\n")
                opened.flush()
                os.fsync(opened.fileno())
    except OSError as error:
        logger.warning("dead letters", extra={"failure": type(error).__name__})
        raise Unavailable("A dead letter cannot be stored.") from None


def _send_to_queue(queue_url: str, text: str) -> None:
    body = json.dumps({"QueueUrl": queue_url, "MessageBody": text}).encode()
    headers = {"content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.SendMessage"}
    try:
        status, answer_headers, _ = _queue_service().post("/", body, headers)
        failure = "" if status == 200 else f"{status} {answer_headers.get('x-amzn-errortype', '')}"
    except ConnectionFailed as error:
        failure = str(error)
    if failure:
        logger.warning("dead letters", extra={"failure": failure})
        raise Unavailable("A dead letter cannot be sent.")


@cache
def _queue_service() -> SignedServiceClient:
    from shared.aws.signed_client import SignedServiceClient

    return SignedServiceClient("sqs", connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS)
