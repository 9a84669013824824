"""The two writes of add_message, by boto3's client, made as the module is imported, as AWS recommends."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import boto3

client: Any = boto3.client("dynamodb")


def append(tenant_id: str, conversation_id: str, role: str, content: str) -> None:
    """Assign the message's number and store it."""
    table = os.environ["KHO_MEMORY_TABLE"]
    header = {"pk": {"S": f"{tenant_id}#conversation#{conversation_id}"}, "sk": {"S": "conversation"}}
    numbered = client.update_item(
        TableName=table,
        Key=header,
        UpdateExpression="SET updated_at = :now ADD last_number :one",
        ConditionExpression="attribute_exists(pk)",
        ExpressionAttributeValues={":one": {"N": "1"}, ":now": {"S": datetime.now(UTC).isoformat()}},
        ReturnValues="ALL_NEW",
    )["Attributes"]
    client.put_item(
        TableName=table,
        Item={
            "pk": {"S": f"{tenant_id}#messages#{numbered['generation']['S']}"},
            "sk": {"S": f"message#{int(numbered['last_number']['N']):012d}"},
            "role": {"S": role},
            "content": {"S": content},
        },
    )
