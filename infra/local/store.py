"""The DynamoDB store of a data folder, opened for one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.dynamodb import DURABLE, Engine, EngineFailed, create_tables
from infra.local.environment import point_at_store, prepare
from infra.local.template import load

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from infra.local.template import Template
    from shared.config import Auth


class StoreUnavailable(Exception):
    """The store did not start, or does not run on this platform."""


def open_store(stack: ExitStack, data: Path, *, auth: Auth, url: str = "") -> tuple[Template, str]:
    """Make this process use the store at `url`, else a durable one started on the folder. Create missing tables.

    Return the template and the store's URL.
    """
    template = load()
    prepare(template, auth=auth, log_file=data / "kho.log", passages=data / "passages")
    if not url:
        if not DURABLE:
            raise StoreUnavailable(
                "This platform has no durable local store. Start 'kho serve', and repeat this while it runs."
            )
        url = start_engine(stack, data)
    point_at_store(url)
    create_tables(url, template.tables)
    return template, url


def start_engine(stack: ExitStack, data: Path) -> str:
    """Start the DynamoDB engine on the folder until `stack` is closed. Return its URL."""
    log = data / "store.log"
    try:
        engine = Engine(data / "dynamodb.sqlite", log)
    except EngineFailed as error:
        raise StoreUnavailable(f"{error}. See its log, {log}.") from None
    stack.callback(engine.close)
    return engine.url
