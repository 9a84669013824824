"""A collection of the test's tenant, in the configured table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from shared.aws.dynamodb import Table
from shared.knowledge.collections import CollectionStore
from shared.knowledge.recorded_space import recorded_space
from shared.platform.config import config

if TYPE_CHECKING:
    from shared.knowledge.models import Collection


@pytest.fixture
def table() -> Table:
    return Table(config().knowledge_table)


@pytest.fixture
def collections(table: Table, tenant: str) -> CollectionStore:
    return CollectionStore(table, tenant)


@pytest.fixture
def collection(collections: CollectionStore) -> Collection:
    return collections.create("notes", "fundamental", recorded_space())
