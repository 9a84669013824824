"""DynamoDB's HTTP protocol: the operations that Kho uses, with the interface of boto3's client."""

import base64
import json
import random
import secrets
import time
import zlib
from functools import partialmethod
from typing import Any, Final

from botocore.exceptions import ClientError, EndpointConnectionError

from shared.aws.signed_client import SignedServiceClient
from shared.platform.http import ConnectionFailed

_ATTEMPTS: Final = 3
_CONNECT_SECONDS: Final = 2
_READ_SECONDS: Final = 3
_TRANSIENT: Final = {
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingException",
    "TransactionInProgressException",
}
"""Error codes that are worth a retry."""


class _NoAnswer(EndpointConnectionError):
    fmt = 'Could not connect to the endpoint URL: "{endpoint_url}" ({error})'


class DynamoDBHttpClient:
    """Client of DynamoDB in this process's region or at `url`; transient failures are retried twice by default."""

    _API = "DynamoDB_20120810"

    def __init__(self, url: str = "", *, attempts: int = _ATTEMPTS, read_seconds: float = 0) -> None:
        # Three attempts of three seconds, begun within shared.platform.telemetry's budget, fit into a request's time.
        self._attempts = attempts
        self._service = SignedServiceClient(
            "dynamodb", connect_seconds=_CONNECT_SECONDS, read_seconds=read_seconds or _READ_SECONDS, url=url
        )

    def call(self, operation: str, /, **request: Any) -> Any:
        """Send one operation. Return its answer or raise its error."""
        if operation == "TransactWriteItems":
            # The token makes the transaction idempotent when it is sent again.
            request = {"ClientRequestToken": secrets.token_hex(16)} | request
        body = json.dumps(request, default=_as_base64).encode()
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"{self._API}.{operation}",
            "accept-encoding": "identity",
        }
        for attempt in range(1, self._attempts + 1):
            try:
                status, response_headers, raw = self._service.post("/", body, headers)
                _verify_checksum(raw, response_headers.get("x-amz-crc32"))
                answer = self._parse_response(raw) if raw else {}
            except (ConnectionFailed, ValueError) as error:
                if attempt == self._attempts:
                    raise _NoAnswer(endpoint_url=self._service.url, error=error) from None
            else:
                if status < 300:
                    return answer
                failure = _failure(status, answer, operation)
                transient = status >= 500 or failure.response["Error"]["Code"] in _TRANSIENT
                if attempt == self._attempts or not transient:
                    raise failure
            time.sleep(random.uniform(0, 0.05 * 2**attempt))  # noqa: S311 - jitter, no secret
        raise AssertionError("every attempt returns or raises")

    def close(self) -> None:
        """Close the connections."""
        self._service.close()

    def _parse_response(self, raw: bytes) -> Any:
        # Few items have binary attributes, and a hook is called for each value of an item.
        return json.loads(raw, object_hook=_from_base64 if b'"B"' in raw else None)

    get_item = partialmethod(call, "GetItem")
    put_item = partialmethod(call, "PutItem")
    update_item = partialmethod(call, "UpdateItem")
    delete_item = partialmethod(call, "DeleteItem")
    query = partialmethod(call, "Query")
    scan = partialmethod(call, "Scan")
    batch_get_item = partialmethod(call, "BatchGetItem")
    batch_write_item = partialmethod(call, "BatchWriteItem")
    transact_write_items = partialmethod(call, "TransactWriteItems")
    list_tables = partialmethod(call, "ListTables")
    describe_table = partialmethod(call, "DescribeTable")
    create_table = partialmethod(call, "CreateTable")
    update_table = partialmethod(call, "UpdateTable")


class DynamoDBStreamsHttpClient(DynamoDBHttpClient):
    """Client of DynamoDB Streams, with records in the format of stream events."""

    _API = "DynamoDBStreams_20120810"

    def _parse_response(self, raw: bytes) -> Any:
        return json.loads(raw)

    list_streams = partialmethod(DynamoDBHttpClient.call, "ListStreams")
    describe_stream = partialmethod(DynamoDBHttpClient.call, "DescribeStream")
    get_shard_iterator = partialmethod(DynamoDBHttpClient.call, "GetShardIterator")
    get_records = partialmethod(DynamoDBHttpClient.call, "GetRecords")


def _failure(status: int, answer: dict[str, Any], operation: str) -> ClientError:
    code = str(answer.get("__type", status)).rpartition("#")[2]
    error = {"Code": code, "Message": answer.get("message") or answer.get("Message") or ""}
    response: Any = answer | {"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, operation)


def _verify_checksum(raw: bytes, checksum: str | None) -> None:
    if checksum is not None and zlib.crc32(raw) != int(checksum):
        raise ValueError("the checksum of the answer is wrong")


def _as_base64(value: Any) -> str:
    return base64.b64encode(value).decode("ascii")


def _from_base64(value: dict[str, Any]) -> Any:
    """Decode a binary attribute value. An attribute named B holds an object, not a string."""
    if len(value) == 1 and isinstance(value.get("B"), str):
        return {"B": base64.b64decode(value["B"])}
    return value
