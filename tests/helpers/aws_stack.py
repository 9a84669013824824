"""A deployed stack as the AWS APIs describe it: moto, on loopback."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import urllib3
from moto.server import ThreadedMotoServer

from infra.clients.cli.target import SETTINGS_FUNCTIONS
from infra.local.template import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENVIRONMENT = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}
_SESSION = boto3.Session("test", "test", region_name="us-east-1")  # of no real account


@contextmanager
def running_aws_stack(stack: str, settings: Mapping[str, str], *, dead_letters: int = 0) -> Iterator[str]:
    """Yield the AWS endpoint of `stack`: a table, a dead-letter queue, and functions with their own `settings`."""
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    try:
        role = _SESSION.client("iam", endpoint_url=url).create_role(
            RoleName=stack, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []})
        )
        for name in SETTINGS_FUNCTIONS:
            function = load().functions[name]
            own = {key: value for key, value in settings.items() if key in (function.variables or ())}
            _SESSION.client("lambda", endpoint_url=url).create_function(
                FunctionName=f"{stack}-{name}",
                Runtime="python3.13",
                Role=role["Role"]["Arn"],
                Handler=function.handler,
                Code={"ZipFile": _code()},
                Environment={"Variables": {"KHO_AUTH": "required"} | own},
            )
        _SESSION.client("cloudformation", endpoint_url=url).create_stack(
            StackName=stack, TemplateBody=json.dumps(_template(stack))
        )
        queues = _SESSION.client("sqs", endpoint_url=url)
        for _ in range(dead_letters):
            queues.send_message(QueueUrl=queues.list_queues()["QueueUrls"][0], MessageBody="{}")
        yield url
    finally:
        urllib3.request("POST", f"{url}/moto-api/reset")  # moto's state is global to this process
        server.stop()


def _template(stack: str) -> dict[str, Any]:
    table = {
        "TableName": f"{stack}-MemoryTable",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        "StreamSpecification": {"StreamViewType": "KEYS_ONLY"},
        "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
    }
    return {
        "Resources": {
            "MemoryTable": {"Type": "AWS::DynamoDB::Table", "Properties": table},
            "DeadLetters": {"Type": "AWS::SQS::Queue"},
        }
    }


def _code() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("handler.py", "")
    return packed.getvalue()
