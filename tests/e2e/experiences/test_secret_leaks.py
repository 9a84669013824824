"""An experience rejected for a secret leaves the secret nowhere: in no answer, no log, no file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shared.experiences.secret_scanner import find_secrets
from tests.data.secret_corpus.credentials import CREDENTIALS
from tests.data.secret_corpus.keys import KEYS
from tests.data.secret_corpus.personal import DISGUISED, PERSONAL
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIELDS = ("title", "problem_description", "root_cause", "solution", "context", "keywords")
TOLD = {"title": "It fails", "problem_description": "It fails at night.", "solution": "Mend it."}
LONG_ENOUGH = 8
"""Shorter secrets may be in a log by chance."""


def secret_forms(text: str) -> set[str]:
    """Return the secrets of `text`, raw and as escaped in JSON."""
    secrets = {text[match.start : match.end] for match in find_secrets(text)} | {text}
    long = {secret for secret in secrets if len(secret) >= LONG_ENOUGH}
    return long | {json.dumps(secret)[1:-1] for secret in long}


def submissions() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield a labelled text of each kind of secret, in a field of its own experience."""
    kinds: set[str] = set()
    for text in [*KEYS, *CREDENTIALS, *PERSONAL, *DISGUISED]:
        before = len(kinds)
        kinds |= {match.kind for match in find_secrets(text)}
        if len(kinds) > before:
            field = FIELDS[before % len(FIELDS)]
            if field in ("title", "keywords") and len(text) > 100:
                field = "context"
            yield field, text, TOLD | {field: [text] if field == "keywords" else text}


def test_rejected_secrets_are_not_stored_or_logged(tmp_path: Path) -> None:
    rejected = list(submissions())
    assert len(rejected) > 40
    with KhoServer(tmp_path / "data") as server:
        for number, (field, text, params) in enumerate(rejected):
            if number % 2:
                response = server.post("/recall-kit/submit_experience", json.dumps(params).encode())
                answer = json.loads(response.data)
                assert response.status == 400, text
            else:
                answer = server.call("recall-kit/submit_experience", **params)
            assert answer["success"] is False
            assert (answer["error"]["code"], answer["error"]["details"]["code"]) == (
                "VALIDATION_ERROR",
                "CONTEXT_NOT_SANITIZED",
            ), text
            assert {each["field"].partition(".")[0] for each in answer["error"]["validation_errors"]} == {field}
            answer_text = json.dumps(answer, ensure_ascii=False)
            assert not [secret for secret in secret_forms(text) if secret in answer_text]
        logged = server.printed()
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for _, text, _ in rejected:
        for secret in secret_forms(text):
            assert secret not in logged
            assert secret.encode() not in stored
    assert "recall-kit/submit_experience" in logged or b"recall-kit/submit_experience" in stored
