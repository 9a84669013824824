"""Time to live: deletion of expired items, which DynamoDB does and the local engine does not."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from infra.local.dynamodb import connect
from shared.platform.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.local.template import TableDefinition
    from shared.aws.dynamodb_client import DynamoDBHttpClient

_INTERVAL_SECONDS: Final = 60.0
_MAX_LOAD: Final = 50
"""A sweep scans whole tables, so it may take at most a fiftieth of the time."""


class TtlSweeper(threading.Thread):
    """A thread that deletes expired items from the tables with a TTL attribute."""

    def __init__(self, url: str, tables: Sequence[TableDefinition]) -> None:
        super().__init__(name="expiry", daemon=True)
        self._tables = [table for table in tables if table.expiry_attribute]
        self._url = url
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Stop before the next sweep."""
        self._stopping.set()

    def run(self) -> None:
        """Sweep until stopped."""
        pause = _INTERVAL_SECONDS
        while not self._stopping.wait(pause):
            started = time.monotonic()
            try:
                with connect(self._url) as client:
                    for table in self._tables:
                        self.sweep(client, table)
            except (BotoCoreError, ClientError) as error:
                logger.warning("expiry", extra={"failure": type(error).__name__})
            pause = max(_INTERVAL_SECONDS, _MAX_LOAD * (time.monotonic() - started))

    def sweep(self, client: DynamoDBHttpClient, table: TableDefinition) -> None:
        """Delete the expired items of one table."""
        condition: dict[str, Any] = {
            "ExpressionAttributeNames": {"#expiry": table.expiry_attribute},
            "ExpressionAttributeValues": {":now": {"N": str(int(time.time()))}},
        }
        start: dict[str, Any] = {}
        while True:
            page = client.scan(TableName=table.name, FilterExpression="#expiry < :now", **condition, **start)
            for item in page["Items"]:
                if self._stopping.is_set():
                    return
                key = {name["AttributeName"]: item[name["AttributeName"]] for name in table.creation["KeySchema"]}
                try:
                    client.delete_item(TableName=table.name, Key=key, ConditionExpression="#expiry < :now", **condition)
                except ClientError as error:
                    if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                        raise
                    # Its expiry was extended meanwhile.
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
