"""`kho tenant`: export or erase all data of a tenant."""

import base64
import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import App, Parameter

from infra.clients.cli.target import (
    DEFAULT_TARGET,
    DataTarget,
    exit_with_error,
    open_stores,
    require_tenant_id,
    table_name,
)
from infra.local.template import load
from shared.access import keys as access_keys
from shared.access.api_keys import ApiKeys
from shared.aws import dead_letters
from shared.aws.blob_store import BlobStore
from shared.aws.dynamodb import Keys, Table
from shared.devices import keys as device_keys
from shared.documents import keys as document_keys
from shared.documents.queries import DocumentQueries
from shared.knowledge import keys as knowledge_keys
from shared.knowledge.collections import CollectionStore
from shared.memory import keys as memory_keys
from shared.memory.conversations import Conversations
from shared.platform.config import config

tenant: Final = App(name="tenant", help="Export or erase all data of a tenant.")

_NOT_BY_TENANT: Final = ("ExperiencesTable", "LimitsTable")
"""Tables whose keys do not begin with a tenant: experiences are shared, and rate limits expire within minutes. Nor do
API keys, which are looked up by their id."""


@tenant.command
def export(tenant_id: str, /, *, to: Path, target: DataTarget = DEFAULT_TARGET) -> None:
    """Write all data of a tenant as JSON Lines, including deleted documents and audit logs.

    Args:
        tenant_id: The tenant.
        to: The folder of the files; it is created if necessary.
    """
    require_tenant_id(tenant_id)
    with open_stores(target):
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
    tenant_id: str, /, *, target: DataTarget = DEFAULT_TARGET, yes: Annotated[bool, Parameter(negative=())] = False
) -> None:
    """Remove all data, API keys and OAuth grants of a tenant permanently. If it is interrupted, repeat it.

    Stop a 'kho serve' that runs on the data folder first, unless its index is a Qdrant server.

    Args:
        tenant_id: The tenant.
        yes: Skip the confirmation.
    """
    require_tenant_id(tenant_id)
    if not yes and not _confirm(tenant_id):
        exit_with_error("Nothing was removed. Repeat the tenant's name when asked, or use --yes.")
    with open_stores(target) as running:
        from shared.search.index import knowledge_index
        from shared.search.message_index import message_index

        if running and not config().qdrant_url:
            exit_with_error("The running 'kho serve' has locked the index: stop it first, and restart it afterwards.")
        keys = _erase_keys(tenant_id)
        removed = 0
        while count := sum(_erase_items(table, tenant_id) for table in _tables()):
            removed += count  # repeat until calls in progress have not added items
        if config().has_index:
            knowledge_index().delete_tenant(tenant_id)
        if config().has_message_index:
            message_index().remove_tenant(tenant_id)
        dead_letters.erase(tenant_id)
    print(f"Removed {removed} items and {keys} keys of {tenant_id}.")
    if keys:
        print("Removed keys remain valid for up to a minute: repeat this command then.")


def _confirm(tenant_id: str) -> bool:
    if not sys.stdin.isatty():
        return False
    return input(f"This permanently removes all data of {tenant_id}. Repeat its name: ") == tenant_id


def _tables() -> Iterator[Table]:
    for definition in load().tables:
        if definition.logical not in _NOT_BY_TENANT:
            yield Table(table_name(definition))


def _items(tenant_id: str) -> Iterator[dict[str, Any]]:
    """Yield every item as it is stored."""
    for table in _tables():
        for page in table.scan(f"{tenant_id}#"):
            yield from ({"table": table.name, "item": _without_secret(item)} for item in page)


def _without_secret(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without the key of a webhook's signatures, which is shown only once."""
    is_webhook = item["sk"] == device_keys.WEBHOOK and item["pk"].endswith(device_keys.webhook(""))
    return {name: value for name, value in item.items() if not is_webhook or name != "secret"}


def _documents(tenant_id: str) -> Iterator[dict[str, Any]]:
    """Yield each revision of each document."""
    table = Table(config().documents_table)
    queries = DocumentQueries(table, tenant_id)
    for page in table.scan(document_keys.document(tenant_id, "")):
        for item in page:
            if item["sk"].startswith(document_keys.CONTENT):
                yield {
                    "document_id": document_keys.document_of(item["pk"])[1],
                    "revision": int(item["sk"].removeprefix(document_keys.CONTENT)),
                    "content": {"mime_type": item["mime_type"], "body": queries.text(item)},
                    "metadata": json.loads(item["metadata"]),
                    "is_human_readable": item["is_human_readable"],
                }


def _conversations(tenant_id: str) -> Iterator[dict[str, Any]]:
    """Yield each conversation that exists with its messages and its summary."""
    table = Table(config().memory_table)
    conversations = Conversations(table, tenant_id)
    for page in table.scan(memory_keys.conversation(tenant_id, "")):
        for header in conversations.visible(item["conversation_id"] for item in page).values():
            conversation_id = header.conversation_id
            partition = memory_keys.messages(tenant_id, header.generation)
            items = [item for part in table.query(partition, Keys.after(" ")) for item in part]
            messages = [{name: value for name, value in item.items() if name != "pk"} for item in items]
            yield {"conversation_id": conversation_id, "messages": messages}


def _knowledge(tenant_id: str) -> Iterator[dict[str, Any]]:
    """Yield each document of each collection, with its text."""
    table = Table(config().knowledge_table)
    for collection in CollectionStore(table, tenant_id).list_all():
        texts = BlobStore(table, partial(knowledge_keys.text, tenant_id, collection.id), knowledge_keys.PART_DIGITS)
        for page in table.query(knowledge_keys.partition(tenant_id, "documents", collection.id), Keys.after(" ")):
            for item in page:
                if not item.get("gone"):
                    text = texts.read(item["sk"], item["text"])
                    yield {"collection": collection.name, "path": item["sk"], "title": item["title"], "text": text}


def _erase_keys(tenant_id: str) -> int:
    table = Table(config().access_table)
    key_ids = [key.id for key in ApiKeys(table).list_keys(tenant_id)]
    table.delete_all((access_keys.PARTITION, key_id) for key_id in key_ids)
    return len(key_ids)


def _erase_items(table: Table, tenant_id: str) -> int:
    """Delete the tenant's items, and the index items of its devices. Return the number of the tenant's items."""
    removed = 0
    for page in table.scan(f"{tenant_id}#"):
        items = [(item["pk"], item["sk"]) for item in page]
        devices = [sk for pk, sk in items if pk == device_keys.devices(tenant_id)]
        owners = [(device_keys.owner(device_id), device_keys.OWNER) for device_id in devices]
        has_webhook = any(pk == device_keys.webhook(tenant_id) for pk, _ in items)
        webhooks = [(device_keys.WEBHOOKS, tenant_id)] if has_webhook else []
        table.delete_all(owners + webhooks + items)
        removed += len(items)
    return removed


def _write(file: Path, records: Iterator[dict[str, Any]]) -> int:
    count = 0
    with file.open("w", encoding="utf-8") as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False, default=_to_json) + "\n")
            count += 1
    return count


def _to_json(value: Any) -> Any:
    """Convert a DynamoDB number or binary value to a JSON value."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return {"base64": base64.b64encode(bytes(value)).decode("ascii")}
