"""Reaching the stores from a command: this machine's, served or not, or a deployed stack's."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from cyclopts import Parameter

from infra.local.data_folder import DataFolderInUse, lock_folder, read_server_info
from infra.local.dynamodb import DURABLE, Engine, EngineFailed, connect, create_tables
from infra.local.environment import point_at_store, prepare
from infra.local.template import load
from shared import dynamodb
from shared.rpc.errors import KhoError
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from types_boto3_dynamodb import DynamoDBClient

    from infra.local.data_folder import ServerInfo
    from infra.local.template import TableDefinition

_ANY_FUNCTION: Final = "endpoints-health"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class DataTarget:
    """Whose data.

    Parameters
    ----------
    data
        The data folder of 'kho serve'; it may be running.
    aws_endpoint
        The DynamoDB endpoint that 'kho serve' is given, if it is given one.
    stack
        A deployed stack's name; your own AWS credentials are used.
    """

    data: Path = Path(".kho")
    aws_endpoint: str = ""
    stack: str = ""


DEFAULT_TARGET: Final = DataTarget()


@contextmanager
def open_stores(where: DataTarget) -> Iterator[ServerInfo | None]:
    """Let `shared.config` name the stores of `where`, and tell of the server that runs on them here.

    What goes wrong there ends the command in one line.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    if "POWERTOOLS_LOG_LEVEL" not in os.environ:
        logger.setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        try:
            if where.stack:
                _apply_stack_settings(where.stack)
                yield None
            else:
                yield _open_local(where, stack)
        except KhoError as error:
            exit_with_error(error.message)
        except (BotoCoreError, ClientError) as error:
            exit_with_error(str(error))


def table_name(definition: TableDefinition) -> str:
    """The name that the settings give a table of the template."""
    from shared.config import config

    name: str = getattr(config(), f"{definition.logical.removesuffix('Table').lower()}_table")
    return name


def exit_with_error(message: str) -> NoReturn:
    """End the command with what went wrong, and what to do."""
    sys.exit(f"kho: {message}")


def _apply_stack_settings(stack: str) -> None:
    """Take the settings that the stack's functions have."""
    import boto3

    if boto3.Session().get_credentials() is None:
        exit_with_error("No AWS credentials were found. Sign in first, as for the AWS command line.")
    client = boto3.client("lambda")
    try:
        found = client.get_function_configuration(FunctionName=f"{stack}-{_ANY_FUNCTION}")
    except client.exceptions.ResourceNotFoundException:
        exit_with_error(
            f"There is no stack '{stack}' of Kho in {client.meta.region_name}. Correct --stack, or choose its region."
        )
    os.environ.update(found["Environment"]["Variables"])
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
    # The stack's own level is for its functions: here lines of the log would stand in a command's answer.
    logger.setLevel(logging.CRITICAL)
    dynamodb.override_client(_operator_client())


def _operator_client() -> DynamoDBClient:
    """A client as whoever types the command is signed in, by a profile or a proxy too."""
    import boto3
    from botocore.config import Config

    settings = Config(connect_timeout=2, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    return boto3.client("dynamodb", config=settings)


def _open_local(where: DataTarget, stack: ExitStack) -> ServerInfo | None:
    """Have this process use the machine's store, which a running server has, or which is started for the moment."""
    data = where.data.resolve()
    template = load()
    prepare(template, auth="required", log_file=data / "kho.log", passages=data / "passages")
    try:
        running = read_server_info(data)
        if running is None:
            stack.enter_context(lock_folder(data))
        url = running["store_url"] if running else where.aws_endpoint or _start_engine(stack, data)
    except (DataFolderInUse, EngineFailed) as error:
        exit_with_error(f"{error}.")
    except OSError as error:
        exit_with_error(f"{data} cannot be used: {error.strerror}. Choose another folder with --data.")
    point_at_store(url)
    create_tables(connect(url), template.tables)
    return running


def _start_engine(stack: ExitStack, data: Path) -> str:
    if not DURABLE:
        exit_with_error(
            "This platform has no durable local store: start 'kho serve' first, and repeat this while it runs."
        )
    engine = Engine(data / "dynamodb.sqlite", data / "store.log")
    stack.callback(engine.close)
    return engine.url
