"""The environment variables of functions on one machine. On AWS, the template sets them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from infra.local import passed_socket
from infra.local.free_space import is_store_full
from infra.local.search_engine.index_process import open_index
from shared.aws import dead_letters
from shared.platform.runtime import runtime
from shared.search.cpu_count import cpu_count

if TYPE_CHECKING:
    from infra.local.template import Template


FIRMWARE_FOLDER: Final = "firmware"
"""The folder in the data folder whose files `GET /firmware/{file}` serves."""
_BEDROCK_SETTINGS: Final = ("KHO_MODEL_PROVIDER", "KHO_EMBEDDER", "KHO_RERANKER")
_CREDENTIALS: Final = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")


def prepare(template: Template, *, auth: str, data: Path | None = None, own_account: bool = False) -> None:
    """Set this process's environment, for files in the folder `data`. Variables that the operator has set stay.

    AWS credentials are removed unless Bedrock or the operator's own account is used.
    """
    configured = {name: value for name, value in os.environ.items() if value}
    # Calls of the embedding function share this machine's cores. On AWS each has an instance of its own.
    own = {"KHO_EMBEDDING_CALLS": str(cpu_count())}
    os.environ.update(template.environment | own | configured)
    os.environ["KHO_AUTH"] = auth
    # boto3 reads AWS_DEFAULT_REGION, our client AWS_REGION; set both.
    os.environ["AWS_REGION"] = os.environ.setdefault("AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", "us-east-1"))
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
    os.environ["KHO_DEAD_LETTERS"] = str(data / dead_letters.FILE_NAME) if data else ""
    if data:
        os.environ["KHO_LOG_FILE"] = str(data / "kho.log")
        os.environ.setdefault("KHO_QDRANT_FOLDER", str(data / "passages"))
        os.environ.setdefault("KHO_FIRMWARE_FOLDER", str(data / FIRMWARE_FOLDER))
    runtime.open_index = open_index
    runtime.is_disk_full = is_store_full
    runtime.sockets[passed_socket.SCHEME] = passed_socket.connect
    _bypass_proxy("127.0.0.1,localhost,::1")
    uses_aws = own_account or any(os.environ.get(name) == "bedrock" for name in _BEDROCK_SETTINGS)
    if not (uses_aws and _has_credentials()):
        _remove_credentials()


def point_at_store(url: str) -> None:
    """Make every function use the store at `url`, even if another is configured: never a real account by accident."""
    os.environ["AWS_ENDPOINT_URL_DYNAMODB"] = os.environ["AWS_ENDPOINT_URL_DYNAMODB_STREAMS"] = url
    os.environ["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "false"
    _bypass_proxy(urlsplit(url).hostname or "")


def _bypass_proxy(hosts: str) -> None:
    """Make clients connect to `hosts` directly, even if a proxy is configured."""
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), hosts]))


def _has_credentials() -> bool:
    if any(os.environ.get(name) for name in _CREDENTIALS):
        return True
    files = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}
    return any(Path(os.environ.get(name, default)).expanduser().is_file() for name, default in files.items())


def _remove_credentials() -> None:
    """Replace AWS credentials by dummies: the local stores need none, and real ones must not reach them."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"):
        os.environ.pop(name, None)
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
    # boto3 does not sign requests without credentials.
    os.environ["AWS_ACCESS_KEY_ID"] = os.environ["AWS_SECRET_ACCESS_KEY"] = "local"  # noqa: S105 - no secret
