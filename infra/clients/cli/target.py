"""The choice of data for operators' commands: this machine's data folder, served or not, or a deployed stack."""

from __future__ import annotations

import logging
import os
import re
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - the command line reads annotations
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

from cyclopts import Parameter

from infra.local.data_folder import DEFAULT_DATA, DataFolderError, DataFolderMissing, server_or_lock
from infra.local.environment import set_variables
from infra.local.store import StoreUnavailable, open_store
from shared.aws import dynamodb
from shared.aws.lambda_client import LambdaClient
from shared.platform.library_environment import set_for_libraries
from shared.platform.runtime import runtime
from shared.platform.telemetry import logger
from shared.rpc.caller import TENANT_ID
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.data_folder import ServerInfo
    from infra.local.template import TableDefinition

AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON.")]
SETTINGS_FUNCTIONS: Final = ("tool_server-system_check", "device_server-devices_list")
"""The functions that together have the variables of a stack which commands need: tables, index, model, IoT Core."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class DataTarget:
    """The data of a command.

    Args:
        data: The data folder of 'kho serve'.
        aws_endpoint: The DynamoDB endpoint of 'kho serve', if it uses one.
        stack: The name of a deployed stack, accessed with your own AWS credentials.
    """

    data: Path = DEFAULT_DATA
    aws_endpoint: str = ""
    stack: str = ""


DEFAULT_TARGET: Final = DataTarget()


@contextmanager
def open_stores(target: DataTarget, *, create: bool = False) -> Iterator[ServerInfo | None]:
    """Configure `shared.platform.config` for the stores of `target`. Yield the local server that runs on them, if any.

    A data folder that does not exist is an error, unless it may be created. An error ends the command with one line.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    if "POWERTOOLS_LOG_LEVEL" not in os.environ:
        logger.setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        try:
            if target.stack:
                _apply_stack_settings(target.stack)
                yield None
            else:
                yield _open_local(target, stack, create=create)
        except KhoError as error:
            exit_with_error(error.message)
        except (BotoCoreError, ClientError) as error:
            exit_with_error(str(error))


def table_name(definition: TableDefinition) -> str:
    """Return the configured name of a table of the template."""
    from shared.migrations import formats

    return formats.table_name(short_name(definition))


def short_name(definition: TableDefinition) -> str:
    """Return the name of a table in settings, such as `memory`."""
    return definition.logical.removesuffix("Table").lower()


def require_tenant_id(tenant_id: str) -> None:
    """End the command if this cannot be a tenant's name."""
    if not re.fullmatch(TENANT_ID, tenant_id):
        exit_with_error(f"'{tenant_id}' cannot be a tenant: 1 to 128 letters, digits and . _ @ : - inside.")


def exit_with_error(message: str) -> NoReturn:
    """End the command with an error message."""
    sys.exit(f"kho: {message}")


def _apply_stack_settings(stack: str) -> None:
    """Use the environment variables of the stack's functions."""
    import boto3
    from botocore.config import Config

    if boto3.Session().get_credentials() is None:
        exit_with_error("No AWS credentials were found. Sign in first, as for the AWS command line.")
    client = boto3.client("lambda")
    try:
        functions = [client.get_function_configuration(FunctionName=f"{stack}-{name}") for name in SETTINGS_FUNCTIONS]
    except client.exceptions.ResourceNotFoundException:
        exit_with_error(
            f"There is no stack '{stack}' of Kho in {client.meta.region_name}. Correct --stack, choose its region, or, "
            "after an upgrade, deploy it first."
        )
    for function in functions:
        set_variables(function["Environment"]["Variables"])
    set_for_libraries({"POWERTOOLS_METRICS_DISABLED": "true"})
    # The stack's log level is for its functions. Log lines would mix with the command's output.
    logger.setLevel(logging.CRITICAL)
    settings = Config(connect_timeout=2, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    # This client has the operator's credentials, profile and proxy.
    dynamodb.override_client(boto3.client("dynamodb", config=settings))
    lambda_client = LambdaClient()
    runtime.lambda_client = lambda: lambda_client


def _open_local(target: DataTarget, stack: ExitStack, *, create: bool) -> ServerInfo | None:
    """Use the store of the running server, or start the store for this command."""
    data = target.data.resolve()
    try:
        running = server_or_lock(data, stack, create=create)
        open_store(stack, data, auth="required", url=running["store_url"] if running else target.aws_endpoint)
    except DataFolderMissing as error:
        exit_with_error(f"{error}. Correct --data (KHO_DATA); 'kho serve' creates it.")
    except DataFolderError as error:
        exit_with_error(f"{error}. Choose another folder with --data.")
    except StoreUnavailable as error:
        exit_with_error(str(error))
    return running
