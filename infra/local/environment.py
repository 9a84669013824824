"""The settings that functions find on one machine, in place of those that the template gives them on AWS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.local.template import Template


def prepare(template: Template, *, auth: str, log_file: Path | None = None, passages: Path | None = None) -> None:
    """Set this process's environment; what the operator has set stays."""
    given = {name: value for name, value in os.environ.items() if value}
    os.environ.update(template.environment | given)
    os.environ["KHO_AUTH"] = auth
    os.environ.setdefault("AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", "us-east-1"))
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
    if log_file:
        os.environ["KHO_LOG_FILE"] = str(log_file)
    if passages:
        os.environ.setdefault("KHO_QDRANT_FOLDER", str(passages))
    if not _has_credentials():
        # The store here asks for none, but boto3 signs nothing without.
        os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "local"  # noqa: S105 - no secret


def point_at_store(url: str) -> None:
    """Have every function use the store at `url`, whatever else is configured: never a real account by accident."""
    os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = os.environ["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] = url
    os.environ["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "false"


def _has_credentials() -> bool:
    credentials = Path(os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")).expanduser()
    return bool(os.environ.get("AWS_ACCESS_KEY_ID") or os.environ.get("AWS_PROFILE")) or credentials.is_file()
