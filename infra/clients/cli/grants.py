"""`kho grants`: list and revoke OAuth grants, in this machine's data or in a deployed stack."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from cyclopts import App

from infra.clients.cli.target import DEFAULT_TARGET, AsJson, DataTarget, open_stores, require_tenant_id
from infra.clients.cli.text_table import format_table
from shared.access.oauth.grants import Grants
from shared.aws.dynamodb import Table
from shared.platform.clock import iso_time
from shared.platform.config import config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.access.oauth.grants import Grant

grants: Final = App(name="grants", help="OAuth grants: what people have allowed applications that hold no key.")


@grants.command(name="list")
def list_(*, tenant: str | None = None, target: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """List grants, without their tokens.

    Args:
        tenant: List only this tenant's grants.
    """
    with _open_grants(target) as store:
        records = [_record(store, grant) for grant in store.list_grants(tenant)]
    if as_json:
        print(json.dumps({"grants": records}))
        return
    columns = ("id", "tenant_id", "client_name", "role", "resource", "sub", "key_id", "state", "created_at", "ends_at")
    print(format_table(columns, (tuple(str(each[column] or "-") for column in columns) for each in records)))


@grants.command
def revoke(grant_id: str, /, *, tenant: str, target: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Revoke a grant with all of its tokens. They are rejected within a minute.

    Args:
        grant_id: The grant's ID, from 'kho grants list'.
        tenant: The grant's tenant.
    """
    require_tenant_id(tenant)
    with _open_grants(target) as store:
        record = _record(store, store.revoke(tenant, grant_id))
    print(json.dumps(record) if as_json else f"Grant {grant_id} of {record['client_name']} was revoked.")


def _record(store: Grants, grant: Grant) -> dict[str, Any]:
    times = {"ends_at": iso_time(grant.ends_at), "idle_until": iso_time(grant.idle_until)}
    return asdict(grant) | times | {"state": store.state(grant, time.time())}


@contextmanager
def _open_grants(target: DataTarget) -> Iterator[Grants]:
    with open_stores(target):
        yield Grants(Table(config().access_table))
