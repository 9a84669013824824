"""`kho keys`: create, list and revoke API keys, in this machine's data or in a deployed stack."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter
from cyclopts.validators import Number

from infra.clients.cli.target import DEFAULT_TARGET, AsJson, DataTarget, exit_with_error, open_stores, require_tenant_id
from infra.clients.cli.text_table import format_table
from shared.access.api_keys import ApiKeys
from shared.access.oauth.grants import Grants
from shared.aws.dynamodb import Table
from shared.platform.config import config
from shared.rpc.caller import Role  # noqa: TC001 - cyclopts reads it

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.access.api_keys import ApiKey
    from shared.access.oauth.grants import Grant

keys: Final = App(name="keys", help="API keys. A caller with a key belongs to its tenant and has its role.")


@keys.command
def create(  # noqa: PLR0913 - one argument an option
    *,
    tenant: str,
    role: Role,
    name: str = "",
    expires_in_days: Annotated[int | None, Parameter(validator=Number(gte=1, lte=36_500))] = None,
    target: DataTarget = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Create a key. It is shown only once; the store keeps only its hash.

    Args:
        tenant: The tenant that callers with this key belong to.
        role: reader: queries. writer: also changes. operator: also devices. admin: also moderation.
        name: The caller's name, as audit logs show it ('sub'); default: 'key-' and the key's id.
        expires_in_days: The key's lifetime; default: unlimited.
    """
    require_tenant_id(tenant)
    if name and (len(name) > 128 or not name.isprintable()):
        exit_with_error("A name is at most 128 printable characters.")
    with _open_keys(target, create=True) as store:
        expires_in = timedelta(days=expires_in_days) if expires_in_days else None
        key, text = store.create(tenant, role, name=name, expires_in=expires_in)
    if as_json:
        print(json.dumps(_record(key) | {"key": text}))
        return
    print(f"Key {key.id}: tenant {key.tenant_id}, role {key.role}, name {key.name}.")
    print(f"It expires {key.expires_at or 'never'}.")
    print(f"\n  {text}\n")
    print("Save it: it is not shown again. Callers send it in the header 'Authorization: Bearer <key>'.")


@keys.command(name="list")
def list_(*, tenant: str | None = None, target: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """List keys, without their secrets.

    Args:
        tenant: List only this tenant's keys.
    """
    with _open_keys(target) as store:
        signed = Counter(grant.key_id for grant in _active_grants(tenant))
        records = [_record(key, signed[key.id]) for key in store.list_keys(tenant)]
    if as_json:
        print(json.dumps({"keys": records}))
        return
    columns = ("id", "tenant_id", "role", "name", "state", "created_at", "expires_at", "grants")
    print(format_table(columns, (tuple(_shown(each[column]) for column in columns) for each in records)))


@keys.command
def revoke(key_id: str, /, *, target: DataTarget = DEFAULT_TARGET, as_json: AsJson = False) -> None:
    """Revoke a key. It is rejected within a minute, as are the tokens of OAuth grants that it signed.

    Args:
        key_id: The key's ID, from 'kho keys list', not the key itself.
    """
    with _open_keys(target) as store:
        key = store.revoke(key_id)
    print(json.dumps(_record(key)) if as_json else f"Key {key.id} ({key.name}) was revoked at {key.revoked_at}.")


def _record(key: ApiKey, grants: int = 0) -> dict[str, Any]:
    return asdict(key) | {"state": key.state(time.time()), "grants": grants}


def _shown(value: object) -> str:
    return "never" if value is None else str(value)


def _active_grants(tenant: str | None) -> Iterator[Grant]:
    """Yield the OAuth grants that are in force, apart from the state of the keys that signed them."""
    grants = Grants(Table(config().access_table)).list_grants(tenant)
    return (grant for grant in grants if grant.state(time.time()) == "active")


@contextmanager
def _open_keys(target: DataTarget, *, create: bool = False) -> Iterator[ApiKeys]:
    with open_stores(target, create=create):
        yield ApiKeys(Table(config().access_table))
