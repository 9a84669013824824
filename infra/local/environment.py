"""The settings that functions find on one machine, in place of those that the template gives them on AWS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from infra.local.template import Template


_MAY_BE_BEDROCK: Final = ("KHO_MODEL_PROVIDER", "KHO_EMBEDDER", "KHO_RERANKER")

_EMBEDDED: Final = {"KHO_EMBEDDER": "embedded", "KHO_RERANKER": "late-interaction"}
"""What one machine does by itself, which on AWS others do."""
_CREDENTIALS: Final = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")


def prepare(
    template: Template,
    *,
    auth: str,
    log_file: Path | None = None,
    passages: Path | None = None,
    own_account: bool = False,
) -> None:
    """Set this process's environment; what the operator has set stays, credentials only where AWS is really asked."""
    given = {name: value for name, value in os.environ.items() if value}
    os.environ.update(template.environment | _EMBEDDED | given)
    os.environ["KHO_AUTH"] = auth
    # One region for boto3, which knows the one name, and for all others, who prefer the other.
    os.environ["AWS_REGION"] = os.environ.setdefault("AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", "us-east-1"))
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
    if log_file:
        os.environ["KHO_LOG_FILE"] = str(log_file)
    if passages:
        os.environ.setdefault("KHO_QDRANT_FOLDER", str(passages))
    _bypass_proxy("127.0.0.1,localhost,::1")
    asked = own_account or any(os.environ.get(name) == "bedrock" for name in _MAY_BE_BEDROCK)
    if not (asked and _has_credentials()):
        _forget_account()


def point_at_store(url: str) -> None:
    """Have every function use the store at `url`, whatever else is configured: never a real account by accident."""
    os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = os.environ["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] = url
    os.environ["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "false"
    _bypass_proxy(str(urlsplit(url).hostname))


def _bypass_proxy(hosts: str) -> None:
    """Make clients connect to `hosts` directly, whatever proxy is configured."""
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), hosts]))


def _has_credentials() -> bool:
    if any(os.environ.get(name) for name in _CREDENTIALS):
        return True
    files = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}
    return any(Path(os.environ.get(name, usual)).expanduser().is_file() for name, usual in files.items())


def _forget_account() -> None:
    """Let nothing that is configured for a real account reach the stores here, which ask for no credentials at all."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
    # boto3 signs nothing without.
    os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "local"  # noqa: S105 - no secret
