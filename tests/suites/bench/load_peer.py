"""The peer of the benchmark `load`: a conversation's messages by FastAPI and boto3, as their guides write it.

Its two methods do the writes and reads that Kho's do, and nothing else: no errors of a contract, no limits, no log.
As a program, it is one worker on the listening socket whose descriptor it is given. uvicorn's own workers leave
Nagle's algorithm on, and each of their answers waits up to 40 ms.
"""

from __future__ import annotations

import os
import socket
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import boto3
import uvicorn
from botocore.config import Config
from fastapi import FastAPI, HTTPException  # type: ignore[import-not-found]
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

app = FastAPI()
dynamodb: DynamoDBClient = boto3.client("dynamodb", config=Config(max_pool_connections=64))
table = os.environ["KHO_MEMORY_TABLE"]


class AddMessage(BaseModel):
    """The message and its conversation."""

    conversation_id: Annotated[str, Field(min_length=1, max_length=128)]
    role: Literal["user", "assistant", "system"]
    content: Annotated[str, Field(min_length=1)]


class GetContext(BaseModel):
    """The conversation, and the maximum number of messages."""

    conversation_id: Annotated[str, Field(min_length=1, max_length=128)]
    max_messages: Annotated[int, Field(ge=1)] = 6


@app.post("/memory-server/memory/add_message")  # type: ignore[untyped-decorator]
def add_message(message: AddMessage) -> dict[str, str]:
    """Take the message's number from the conversation's header, and store the message."""
    now = datetime.now(UTC).isoformat()
    header = dynamodb.update_item(
        TableName=table,
        Key={"pk": {"S": f"conversation#{message.conversation_id}"}, "sk": {"S": "conversation"}},
        UpdateExpression="SET updated_at = :now, preview = :preview ADD last_number :one",
        ExpressionAttributeValues={":one": {"N": "1"}, ":now": {"S": now}, ":preview": {"S": message.content[:80]}},
        ReturnValues="ALL_NEW",
    )
    number = int(header["Attributes"]["last_number"]["N"])
    dynamodb.put_item(
        TableName=table,
        Item={
            "pk": {"S": f"messages#{message.conversation_id}"},
            "sk": {"S": f"message#{number:012d}"},
            "role": {"S": message.role},
            "content": {"S": message.content},
            "at": {"S": now},
        },
    )
    return {"status": "success", "conversation_id": message.conversation_id}


@app.post("/memory-server/memory/get_context")  # type: ignore[untyped-decorator]
def get_context(params: GetContext) -> dict[str, Any]:
    """Read the conversation's header, and its last messages, oldest first."""
    header = dynamodb.get_item(
        TableName=table,
        Key={"pk": {"S": f"conversation#{params.conversation_id}"}, "sk": {"S": "conversation"}},
        ConsistentRead=True,
    )
    if "Item" not in header:
        raise HTTPException(404, "There is no such conversation.")
    page = dynamodb.query(
        TableName=table,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :message)",
        ExpressionAttributeValues={
            ":pk": {"S": f"messages#{params.conversation_id}"},
            ":message": {"S": "message#"},
        },
        ScanIndexForward=False,
        Limit=params.max_messages,
        ConsistentRead=True,
    )
    messages = [{"role": item["role"]["S"], "content": item["content"]["S"]} for item in reversed(page["Items"])]
    return {"messages": messages}


if __name__ == "__main__":
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(
        sockets=[socket.socket(fileno=int(sys.argv[1]))]
    )
