"""`kho keys`: make, list and revoke API keys, on this machine's data or on a deployed table."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

from cyclopts import App, Parameter
from cyclopts.validators import Number

from infra.local.dynamodb import DURABLE, Engine, EngineFailed, connect, create_tables
from infra.local.environment import point_at_store, prepare
from infra.local.folder import FolderTaken, hold, serving
from infra.local.template import STACK, load
from shared.rpc.caller import TENANT_ID, Role
from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.access.api_keys import ApiKey, ApiKeys

keys: Final = App(name="keys", help="API keys: whoever has one calls as its tenant, with its role.")

_AsJson = Annotated[bool, Parameter(name="--json", negative=())]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Where:
    """Whose keys.

    Parameters
    ----------
    data
        The data folder of 'kho serve'; it may be running.
    aws_endpoint
        The DynamoDB endpoint that 'kho serve' is given, if it is given one.
    table
        A deployed access table, the stack's output AccessTable; your own AWS credentials are used.
    """

    data: Path = Path(".kho")
    aws_endpoint: str = ""
    table: str = ""


_HERE: Final = Where()


@keys.command
def create(  # noqa: PLR0913 - one argument an option
    *,
    tenant: str,
    role: Role,
    name: str = "",
    expires_in_days: Annotated[int | None, Parameter(validator=Number(gte=1, lte=36_500))] = None,
    where: Where = _HERE,
    as_json: _AsJson = False,
) -> None:
    """Make a key; it is shown this once, and nowhere kept.

    Parameters
    ----------
    tenant
        The tenant that callers with this key belong to.
    role
        reader: queries. writer: changes too. operator: devices too. admin: moderation too.
    name
        Who calls with it: the caller's 'sub', as audit logs show it. Without one, 'key-' and the key's id.
    expires_in_days
        After how many days it ends; without, never.
    as_json
        Print JSON.
    """
    if not re.fullmatch(TENANT_ID, tenant):
        _end(f"'{tenant}' cannot be a tenant: 1 to 128 letters, digits and . _ @ : - inside.")
    if name and (len(name) > 128 or not name.isprintable()):
        _end("A name is at most 128 printable characters.")
    with _opened(where) as opened:
        expires_in = timedelta(days=expires_in_days) if expires_in_days else None
        key, text = opened.create(tenant, role, name=name, expires_in=expires_in)
    if as_json:
        print(json.dumps(_record(key) | {"key": text}))
        return
    print(f"Key {key.id}: tenant {key.tenant_id}, role {key.role}, name {key.name}.")
    print(f"It expires {key.expires_at or 'never'}.")
    print(f"\n  {text}\n")
    print("Keep it: it is not shown again. Callers send it as the header 'Authorization: Bearer <key>'.")


@keys.command(name="list")
def list_(*, tenant: str | None = None, where: Where = _HERE, as_json: _AsJson = False) -> None:
    """List keys, without their secrets.

    Parameters
    ----------
    tenant
        Only this tenant's.
    as_json
        Print JSON.
    """
    with _opened(where) as opened:
        found = [_record(key) for key in opened.listed(tenant)]
    if as_json:
        print(json.dumps({"keys": found}))
        return
    shown = ("id", "tenant_id", "role", "name", "state", "created_at", "expires_at")
    rows = [shown, *(tuple(str(each[column] or "never") for column in shown) for each in found)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(shown))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@keys.command
def revoke(key_id: str, /, *, where: Where = _HERE, as_json: _AsJson = False) -> None:
    """Revoke a key; within a minute it opens nothing any more.

    Parameters
    ----------
    key_id
        The key's id, from 'kho keys list': not the key itself.
    as_json
        Print JSON.
    """
    with _opened(where) as opened:
        key = opened.revoke(key_id)
    print(json.dumps(_record(key)) if as_json else f"Key {key.id} ({key.name}) is revoked since {key.revoked_at}.")


def _record(key: ApiKey) -> dict[str, Any]:
    return asdict(key) | {"state": key.state(time.time())}


@contextmanager
def _opened(where: Where) -> Iterator[ApiKeys]:
    """The keys where they are, and what goes wrong there in one line."""
    from botocore.exceptions import BotoCoreError, ClientError

    os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "CRITICAL")
    with ExitStack() as stack:
        table = _deployed(where.table) if where.table else _local(where, stack)
        from shared.access.api_keys import ApiKeys  # reads its settings as it is imported
        from shared.dynamodb import Table

        try:
            yield ApiKeys(Table(table))
        except KhoError as error:
            _end(error.message)
        except (BotoCoreError, ClientError) as error:
            _end(str(error))


def _deployed(table: str) -> str:
    import boto3

    if boto3.Session().get_credentials() is None:
        _end("No AWS credentials were found. Sign in first, as for the AWS command line.")
    return table


def _local(where: Where, stack: ExitStack) -> str:
    """Have this process use the machine's store, which a running server has, or which is started for the moment."""
    data = where.data.resolve()
    template = load()
    prepare(template, auth="required", log_file=data / "kho.log")
    try:
        running = serving(data)
        if running is None:
            stack.enter_context(hold(data))
        url = running["store_url"] if running else where.aws_endpoint or _started(stack, data)
    except (FolderTaken, EngineFailed) as error:
        _end(f"{error}.")
    except OSError as error:
        _end(f"{data} cannot be used: {error.strerror}. Choose another folder with --data.")
    point_at_store(url)
    create_tables(connect(url), template.tables)
    return f"{STACK}-AccessTable"


def _started(stack: ExitStack, data: Path) -> str:
    if not DURABLE:
        _end("This platform has no durable local store: start 'kho serve' first, then make keys while it runs.")
    engine = Engine(data / "dynamodb.sqlite", data / "store.log")
    stack.callback(engine.close)
    return engine.url


def _end(message: str) -> NoReturn:
    sys.exit(f"kho: {message}")
