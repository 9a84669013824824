"""DynamoDB's own protocol, for functions: what `shared.dynamodb` asks for, in and out as boto3's client has it."""

from __future__ import annotations

import base64
import json
import random
import secrets
import time
import zlib
from functools import partialmethod
from typing import Any, Final

from botocore.exceptions import ClientError, EndpointConnectionError

from shared.aws.signed_client import ConnectionFailed, SignedServiceClient

_ATTEMPTS: Final = 3
_CONNECT_SECONDS: Final = 2
_READ_SECONDS: Final = 3
_PASSING: Final = {
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingException",
    "TransactionInProgressException",
}
"""What may be otherwise the next time."""


class DynamoDBHttpClient:
    """DynamoDB in this process's region, or at `url`; what may pass is tried three times."""

    _API = "DynamoDB_20120810"

    def __init__(self, url: str = "") -> None:
        # Three tries of three seconds, begun within shared.telemetry's budget, end within the time a request has.
        self._service = SignedServiceClient(
            "dynamodb", connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS, url=url
        )

    def call(self, operation: str, /, **request: Any) -> Any:
        """The answer to an operation of the protocol, or the error that it says."""
        if operation == "TransactWriteItems":
            # A transaction that is sent again is done once.
            request = {"ClientRequestToken": secrets.token_hex(16)} | request
        body = json.dumps(request, default=_as_base64).encode()
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"{self._API}.{operation}",
            "accept-encoding": "identity",
        }
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                status, answered, raw = self._service.post("/", body, headers)
                _require_whole(raw, answered.get("x-amz-crc32"))
                answer = self._parse_response(raw) if raw else {}
            except (ConnectionFailed, ValueError) as error:
                if attempt == _ATTEMPTS:
                    raise EndpointConnectionError(endpoint_url=self._service.url, error=error) from None
            else:
                if status < 300:
                    return answer
                failure = _failure(status, answer, operation)
                passing = status >= 500 or failure.response["Error"]["Code"] in _PASSING
                if attempt == _ATTEMPTS or not passing:
                    raise failure
            time.sleep(random.uniform(0, 0.05 * 2**attempt))  # noqa: S311 - spreads retries, no secret
        raise AssertionError("every attempt ends in an answer or an error")

    def close(self) -> None:
        """Let go of the connections."""
        self._service.close()

    def _parse_response(self, raw: bytes) -> Any:
        return json.loads(raw, object_hook=_from_base64)

    get_item = partialmethod(call, "GetItem")
    put_item = partialmethod(call, "PutItem")
    update_item = partialmethod(call, "UpdateItem")
    delete_item = partialmethod(call, "DeleteItem")
    query = partialmethod(call, "Query")
    scan = partialmethod(call, "Scan")
    batch_get_item = partialmethod(call, "BatchGetItem")
    batch_write_item = partialmethod(call, "BatchWriteItem")
    transact_write_items = partialmethod(call, "TransactWriteItems")


class DynamoDBStreamsHttpClient(DynamoDBHttpClient):
    """DynamoDB Streams, its records as functions are sent them."""

    _API = "DynamoDBStreams_20120810"

    def _parse_response(self, raw: bytes) -> Any:
        return json.loads(raw)

    list_streams = partialmethod(DynamoDBHttpClient.call, "ListStreams")
    describe_stream = partialmethod(DynamoDBHttpClient.call, "DescribeStream")
    get_shard_iterator = partialmethod(DynamoDBHttpClient.call, "GetShardIterator")
    get_records = partialmethod(DynamoDBHttpClient.call, "GetRecords")


def _failure(status: int, answer: dict[str, Any], operation: str) -> ClientError:
    code = str(answer.get("__type", status)).rpartition("#")[2]
    said = {"Code": code, "Message": answer.get("message") or answer.get("Message") or ""}
    response: Any = answer | {"Error": said, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)


def _require_whole(raw: bytes, checksum: str | None) -> None:
    if checksum is not None and zlib.crc32(raw) != int(checksum):
        raise ValueError("the answer was damaged on its way")


def _as_base64(value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _from_base64(found: dict[str, Any]) -> Any:
    """DynamoDB's notation of bytes holds them in base64; an attribute may bear the notation's name."""
    if len(found) == 1 and isinstance(found.get("B"), str):
        return {"B": base64.b64decode(found["B"])}
    return found
