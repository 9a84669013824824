"""`kho tenant`: hand over, or remove, all that is a tenant's."""

from __future__ import annotations

import base64
import json
import re
import sys
from decimal import Decimal
from pathlib import Path  # noqa: TC003 - cyclopts reads it
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import App, Parameter

from infra.cli.target import DEFAULT_TARGET, DataTarget, exit_with_error, open_stores, table_name
from infra.local.template import load
from shared.rpc.caller import TENANT_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.dynamodb import Item, Table

tenant: Final = App(name="tenant", help="All that is a tenant's: hand it over, or remove it.")

_NOT_BY_TENANT: Final = ("AccessTable", "ExperiencesTable")
"""Keys are looked up before anyone knows the tenant; experiences are everybody's."""


@tenant.command
def export(tenant_id: str, /, *, to: Path, where: DataTarget = DEFAULT_TARGET) -> None:
    """Write all that is a tenant's, deleted documents and audit logs included, as lines of JSON.

    Parameters
    ----------
    tenant_id
        The tenant.
    to
        A folder for the files; it is made.
    """
    _require_tenant(tenant_id)
    with open_stores(where):
        try:
            to.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, records in (
                ("documents", _documents(tenant_id)),
                ("conversations", _conversations(tenant_id)),
                ("knowledge", _knowledge(tenant_id)),
                ("items", _items(tenant_id)),
            ):
                file = to / f"{name}.jsonl"
                print(f"{_write(file, records):>8} {name} in {file}")
        except OSError as error:
            exit_with_error(f"{to} cannot be written: {error.strerror}. Choose another folder with --to.")


@tenant.command
def erase(
    tenant_id: str, /, *, where: DataTarget = DEFAULT_TARGET, yes: Annotated[bool, Parameter(negative=())] = False
) -> None:
    """Remove all that is a tenant's, keys too, for good; it can be repeated where it was broken off.

    Parameters
    ----------
    tenant_id
        The tenant.
    yes
        Do not ask.
    """
    _require_tenant(tenant_id)
    if not yes and not _confirm(tenant_id):
        exit_with_error("Nothing was removed. Repeat the tenant's name when asked, or give --yes.")
    with open_stores(where) as running:
        from shared.config import config
        from shared.knowledge.index import knowledge_index

        if running and not config().qdrant_url:
            exit_with_error("The running 'kho serve' has the index: stop it first, and start it again afterwards.")
        keys = _erase_keys(tenant_id)
        removed = 0
        while found := sum(_erase_items(table, tenant_id) for table in _tables()):
            removed += found  # until nobody who was still writing has left anything
        if config().has_index:
            knowledge_index().delete_tenant(tenant_id)
    print(f"{removed} items and {keys} keys of {tenant_id} are removed.")
    if keys:
        print("A key lives a minute longer than it is there: repeat this after that.")


def _require_tenant(tenant_id: str) -> None:
    if not re.fullmatch(TENANT_ID, tenant_id):
        exit_with_error(f"'{tenant_id}' cannot be a tenant: 1 to 128 letters, digits and . _ @ : - inside.")


def _confirm(tenant_id: str) -> bool:
    if not sys.stdin.isatty():
        return False
    return input(f"This removes all of {tenant_id} for good. Its name again: ") == tenant_id


def _tables() -> Iterator[Table]:
    from shared.dynamodb import Table

    for definition in load().tables:
        if definition.logical not in _NOT_BY_TENANT:
            yield Table(table_name(definition))


def _items(tenant_id: str) -> Iterator[dict[str, Any]]:
    """Every item as it is stored."""
    for table in _tables():
        for page in table.scan(f"{tenant_id}#"):
            yield from ({"table": table.name, "item": item} for item in page)


def _documents(tenant_id: str) -> Iterator[dict[str, Any]]:
    """Each revision of each document."""
    from shared.config import config
    from shared.documents import keys
    from shared.documents.body_store import BodyStore
    from shared.dynamodb import Table

    table = Table(config().documents_table)
    bodies = BodyStore(table, tenant_id)
    for page in table.scan(keys.document(tenant_id, "")):
        for item in page:
            if item["sk"].startswith(keys.CONTENT):
                yield {
                    "document_id": keys.document_of(item["pk"])[1],
                    "revision": int(item["sk"].removeprefix(keys.CONTENT)),
                    "content": {"mime_type": item["mime_type"], "body": bodies.text(item)},
                    "metadata": json.loads(item["metadata"]),
                    "is_human_readable": item["is_human_readable"],
                }


def _conversations(tenant_id: str) -> Iterator[dict[str, Any]]:
    """Each conversation with its messages and its summary."""
    from shared.config import config
    from shared.dynamodb import Keys, Table
    from shared.memory import keys

    table = Table(config().memory_table)
    for page in table.scan(keys.conversation(tenant_id, "")):
        for header in page:
            conversation_id = header["pk"].removeprefix(keys.conversation(tenant_id, ""))
            partition = keys.messages(tenant_id, header["generation"])
            said = [item for part in table.query(partition, Keys.after(" ")) for item in part]
            yield {"conversation_id": conversation_id, "said": [_without_keys(item) for item in said]}


def _knowledge(tenant_id: str) -> Iterator[dict[str, Any]]:
    """Each document of each collection, with its text."""
    from shared.config import config
    from shared.dynamodb import Keys, Table
    from shared.knowledge import keys
    from shared.knowledge.collections import CollectionStore
    from shared.knowledge.text_store import TextStore

    table = Table(config().knowledge_table)
    for collection in CollectionStore(table, tenant_id).listed():
        texts = TextStore(table, tenant_id, collection.id)
        for page in table.query(keys.documents(tenant_id, collection.id), Keys.after(" ")):
            for item in page:
                if not item.get("gone"):
                    text = texts.read(item["sk"], item["text"])
                    yield {"collection": collection.name, "path": item["sk"], "title": item["title"], "text": text}


def _erase_keys(tenant_id: str) -> int:
    from shared.access import keys
    from shared.access.api_keys import ApiKeys
    from shared.config import config
    from shared.dynamodb import Table

    table = Table(config().access_table)
    mine = [key.id for key in ApiKeys(table).list_keys(tenant_id)]
    table.delete_all((keys.PARTITION, key_id) for key_id in mine)
    return len(mine)


def _erase_items(table: Table, tenant_id: str) -> int:
    """Delete what the table has of the tenant, and what leads to it; how many items that were."""
    from shared.devices import keys as devices

    removed = 0
    for page in table.scan(f"{tenant_id}#"):
        found = [(item["pk"], item["sk"]) for item in page]
        owned = [(devices.owner(sk), devices.OWNER) for pk, sk in found if pk == devices.devices(tenant_id)]
        table.delete_all(owned + found)
        removed += len(found)
    return removed


def _write(file: Path, records: Iterator[dict[str, Any]]) -> int:
    count = 0
    with file.open("w", encoding="utf-8") as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False, default=_plain) + "\n")
            count += 1
    return count


def _without_keys(item: Item) -> Item:
    return {name: value for name, value in item.items() if name != "pk"}


def _plain(value: Any) -> Any:
    """What JSON does not know, in what it knows."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return {"base64": base64.b64encode(bytes(value)).decode("ascii")}
