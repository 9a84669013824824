"""The real local store for tests: its own engine, with the template's tables."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from infra.local.dynamodb import Engine, create_tables
from infra.local.environment import point_at_store, prepare
from infra.local.template import load
from shared import dynamodb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from types_boto3_dynamodb import DynamoDBClient


@contextmanager
def running_store() -> Iterator[str]:
    """Serve the template's tables on loopback, and point this process's settings at them."""
    template = load()
    with tempfile.TemporaryDirectory(prefix="kho-test-") as folder:
        prepare(template, auth="open", passages=Path(folder) / "passages")
        engine = Engine(Path(folder) / "dynamodb.sqlite", Path(folder) / "store.log")
        try:
            point_at_store(engine.url)
            create_tables(engine.url, template.tables)
            yield engine.url
        finally:
            dynamodb.override_client(None)
            engine.close()


def boto3_client(url: str) -> DynamoDBClient:
    """Return boto3's client of the store at `url`."""
    return boto3.client("dynamodb", endpoint_url=url, config=Config(retries={"total_max_attempts": 1}, proxies={}))
