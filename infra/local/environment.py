"""The environment variables of functions on one machine. On AWS, the template sets them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infra.local import passed_socket
from infra.local.free_space import is_store_full
from infra.local.iot.device_secret import device_secret
from infra.local.search_engine.index_process import open_index
from shared.aws import dead_letters
from shared.devices.board_passwords import SETTING as DEVICE_SECRET
from shared.platform.config import config
from shared.platform.library_environment import set_for_libraries
from shared.platform.runtime import runtime
from shared.search.cpu_count import cpu_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.template import Template
    from shared.knowledge.folder_sync import FileSource


_LOOPBACK: Final = "127.0.0.1,localhost,::1"
_BEDROCK_SETTINGS: Final = ("KHO_MODEL_PROVIDER", "KHO_EMBEDDER", "KHO_RERANKER")
_CREDENTIALS: Final = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
_NO_CREDENTIALS: Final = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_ACCESS_KEY_ID": "local",  # boto3 does not sign requests without credentials
    "AWS_SECRET_ACCESS_KEY": "local",
}
"""Dummies: the local stores need no credentials, and real ones must not reach them."""
_OF_CREDENTIALS: Final = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN")


def prepare(
    template: Template, data: Path, *, auth: str, own_account: bool = False, options: Mapping[str, str] | None = None
) -> None:
    """Set the parts and the variables of this process's functions, which keep their data in the folder `data`.

    The operator's variables replace the template's, and `options` the operator's. AWS credentials are removed unless
    Bedrock or the operator's own account is used.
    """
    operator = {name: value for name, value in os.environ.items() if value}
    own = {
        # Calls of the embedding function share this machine's cores. On AWS each has an instance of its own.
        "KHO_EMBEDDING_CALLS": str(cpu_count()),
        "KHO_QDRANT_FOLDER": str(data / "passages"),
        "KHO_FIRMWARE_FOLDER": str(data / "firmware"),
    }
    region = operator.get("AWS_DEFAULT_REGION") or operator.get("AWS_REGION") or "us-east-1"
    environment = template.environment | own | operator | dict(options or {})
    environment |= {
        "KHO_AUTH": auth,
        "KHO_LOG_FILE": str(data / "kho.log"),
        "KHO_DEAD_LETTERS": str(data / dead_letters.FILE_NAME),
        DEVICE_SECRET: environment.get(DEVICE_SECRET) or device_secret(data),
        "AWS_REGION": region,
    }
    # boto3 reads the region and credentials, boto3 and HTTP libraries the proxy, Powertools its own variable.
    libraries = {"AWS_DEFAULT_REGION": region, "POWERTOOLS_METRICS_DISABLED": "true"}
    for name in ("NO_PROXY", "no_proxy"):
        libraries[name] = ",".join(filter(None, [environment.get(name), _LOOPBACK]))
    uses_aws = own_account or any(environment.get(name) == "bedrock" for name in _BEDROCK_SETTINGS)
    removed: tuple[str, ...] = ()
    if not (uses_aws and _has_credentials()):
        libraries |= _NO_CREDENTIALS
        removed = _OF_CREDENTIALS
    set_for_libraries(libraries, without=removed)
    _set_parts({name: value for name, value in environment.items() if name not in removed} | libraries)
    runtime.open_index = open_index


def adopt(variables: Mapping[str, str], library_variables: Mapping[str, str], file_source: FileSource | None) -> None:
    """Set the parts and the variables of a worker, as they are in the process that has started it."""
    set_for_libraries(library_variables, without=[name for name in os.environ if name not in library_variables])
    _set_parts(variables)
    runtime.file_source = file_source


def _set_parts(variables: Mapping[str, str]) -> None:
    runtime.environment = variables
    runtime.is_disk_full = is_store_full
    runtime.sockets[passed_socket.SCHEME] = passed_socket.connect
    config.cache_clear()


def set_variables(variables: Mapping[str, str]) -> None:
    """Set variables of this process's functions. Settings that were read before are read again."""
    runtime.environment = {**runtime.environment, **variables}
    config.cache_clear()


def point_at_store(url: str) -> None:
    """Make every function use the store at `url`, even if another is configured: never a real account by accident."""
    set_variables({"AWS_ENDPOINT_URL_DYNAMODB": url})


def _has_credentials() -> bool:
    if any(os.environ.get(name) for name in _CREDENTIALS):
        return True
    files = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}
    return any(Path(os.environ.get(name, default)).expanduser().is_file() for name, default in files.items())
