"""Documents in the store."""

from __future__ import annotations

import pytest

from infra.local.dynamodb import create_tables
from infra.local.template import load
from shared.platform.config import config
from tests.helpers.dynamodb import boto3_client


@pytest.fixture(scope="module", autouse=True)
def _empty_table(store: str) -> None:
    """Empty the table of documents. Many tests read all of it, some again and again."""
    boto3_client(store).delete_table(TableName=config().documents_table)
    create_tables(store, load().tables)
