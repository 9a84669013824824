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

from infra.local.dynamodb import DURABLE, Engine, EngineFailed, connect, create_tables
from infra.local.environment import point_at_store, prepare
from infra.local.folder import FolderTaken, hold, serving
from infra.local.template import load
from shared import dynamodb
from shared.rpc.errors import KhoError
from shared.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from types_boto3_dynamodb import DynamoDBClient

    from infra.local.folder import Serving
    from infra.local.template import TableDefinition

_ANY_FUNCTION: Final = "doors-health"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
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


HERE: Final = Where()


@contextmanager
def reached(where: Where) -> Iterator[Serving | None]:
    """Let `shared.config` name the stores of `where`, and tell of the server that runs on them here.

    What goes wrong there ends the command in one line.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    if "POWERTOOLS_LOG_LEVEL" not in os.environ:
        logger.setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        try:
            if where.stack:
                _settle(where.stack)
                yield None
            else:
                yield _reach_local(where, stack)
        except KhoError as error:
            end(error.message)
        except (BotoCoreError, ClientError) as error:
            end(str(error))


def settled(definition: TableDefinition) -> str:
    """The name that the settings give a table of the template."""
    from shared.config import config

    name: str = getattr(config(), f"{definition.logical.removesuffix('Table').lower()}_table")
    return name


def end(message: str) -> NoReturn:
    """End the command with what went wrong, and what to do."""
    sys.exit(f"kho: {message}")


def _settle(stack: str) -> None:
    """Take the settings that the stack's functions have."""
    import boto3

    if boto3.Session().get_credentials() is None:
        end("No AWS credentials were found. Sign in first, as for the AWS command line.")
    client = boto3.client("lambda")
    try:
        found = client.get_function_configuration(FunctionName=f"{stack}-{_ANY_FUNCTION}")
    except client.exceptions.ResourceNotFoundException:
        end(f"There is no stack '{stack}' of Kho in {client.meta.region_name}. Correct --stack, or choose its region.")
    os.environ.update(found["Environment"]["Variables"])
    os.environ["POWERTOOLS_METRICS_DISABLED"] = "true"
    # The stack's own level is for its functions: here lines of the log would stand in a command's answer.
    logger.setLevel(logging.CRITICAL)
    dynamodb.use(_signed_in())


def _signed_in() -> DynamoDBClient:
    """A client as whoever types the command is signed in, by a profile or a proxy too."""
    import boto3
    from botocore.config import Config

    settings = Config(connect_timeout=2, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3})
    return boto3.client("dynamodb", config=settings)


def _reach_local(where: Where, stack: ExitStack) -> Serving | None:
    """Have this process use the machine's store, which a running server has, or which is started for the moment."""
    data = where.data.resolve()
    template = load()
    prepare(template, auth="required", log_file=data / "kho.log", passages=data / "passages")
    try:
        running = serving(data)
        if running is None:
            stack.enter_context(hold(data))
        url = running["store_url"] if running else where.aws_endpoint or _started(stack, data)
    except (FolderTaken, EngineFailed) as error:
        end(f"{error}.")
    except OSError as error:
        end(f"{data} cannot be used: {error.strerror}. Choose another folder with --data.")
    point_at_store(url)
    create_tables(connect(url), template.tables)
    return running


def _started(stack: ExitStack, data: Path) -> str:
    if not DURABLE:
        end("This platform has no durable local store: start 'kho serve' first, and repeat this while it runs.")
    engine = Engine(data / "dynamodb.sqlite", data / "store.log")
    stack.callback(engine.close)
    return engine.url
