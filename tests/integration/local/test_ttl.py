"""Expired items are deleted, as on AWS, and nothing else."""

from __future__ import annotations

import time

from infra.local.dynamodb import connect
from infra.local.template import load
from infra.local.ttl import TtlSweeper
from shared.aws.dynamodb import Keys, Table, Write
from shared.platform.config import config


def test_only_expired_items_are_deleted(tenant: str, store: str) -> None:
    table = Table(config().memory_table)
    now = int(time.time())
    for name, expiry in (("past", {"expires_at": now - 10}), ("future", {"expires_at": now + 1000}), ("none", {})):
        table.write(Write("Put", {"pk": tenant, "sk": name, **expiry}))
    definition = next(each for each in load().tables if each.name == table.name)
    with connect(store) as client:
        TtlSweeper(store, [definition]).sweep(client, definition)
    remaining = [item["sk"] for page in table.query(tenant, Keys.after(" ")) for item in page]
    assert remaining == ["future", "none"]
