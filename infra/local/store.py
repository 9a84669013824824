"""The DynamoDB store of a data folder, opened for one process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from infra.local.components import ComponentUnavailable, provide_model
from infra.local.dynamodb import DURABLE, Engine, EngineFailed, create_tables
from infra.local.environment import point_at_store, prepare
from infra.local.free_space import reserve_released
from infra.local.functions import Functions
from infra.local.index_check import mark_lost_indexes
from infra.local.template import load
from shared.migrations.runner import migrate
from shared.platform.formats import DataTooNew
from shared.platform.runtime import runtime

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from infra.local.template import Template
    from shared.platform.config import Auth

_REACHABLE: Final = "Programs of other users of this machine can connect to the embedded store (docs/security.md)."


class StoreUnavailable(Exception):
    """The store did not start, or does not run on this platform."""


def open_store(stack: ExitStack, data: Path, *, auth: Auth, url: str = "") -> tuple[Template, str]:
    """Make this process use the store at `url`, else a durable one started on the folder. Create missing tables.

    Functions that it calls run in this process. Return the template and the store's URL.
    """
    template = load()
    runtime.functions = Functions(template.functions)
    prepare(template, data, auth=auth)
    try:
        provide_model()
    except ComponentUnavailable as error:
        raise StoreUnavailable(str(error)) from None
    if not url:
        if not DURABLE:
            raise StoreUnavailable(
                "This platform has no durable local store. Start 'kho serve', and repeat this while it runs."
            )
        url = start_engine(stack, data)
    point_at_store(url)
    if create_tables(url, template.tables):
        try:
            migrate()  # gives new tables the format of this program
        except DataTooNew as error:
            raise StoreUnavailable(f"{error}.") from None
    return template, url


def start_engine(stack: ExitStack, data: Path, *, private: bool = True) -> str:
    """Start the DynamoDB engine on the folder until `stack` is closed. Return its URL."""
    if _is_database_lost(data):
        raise StoreUnavailable(
            f"The database {data / 'dynamodb.sqlite'} is missing or empty, but there is an index of its documents. "
            f"Restore the database from a backup, or delete {data / 'passages'} to start without data."
        )
    if not runtime.environment.get("KHO_QDRANT_URL"):
        mark_lost_indexes(data)
    log = data / "store.log"
    try:
        with reserve_released(data):
            engine = Engine(data / "dynamodb.sqlite", log, private=private)
    except ComponentUnavailable as error:
        raise StoreUnavailable(f"{error} Or name a DynamoDB endpoint with --aws-endpoint.") from None
    except EngineFailed as error:
        raise StoreUnavailable(f"{error}. See its log, {log}.") from None
    stack.callback(engine.close)
    if not engine.is_private:
        print(_REACHABLE, file=sys.stderr, flush=True)
    return engine.url


def _is_database_lost(data: Path) -> bool:
    files = [data / name for name in ("dynamodb.sqlite", "dynamodb.sqlite-wal")]
    return (data / "passages" / "shard").exists() and not any(file.exists() and file.stat().st_size for file in files)
