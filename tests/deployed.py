"""A deployed stack as its functions' settings tell of it: moto's Lambda, on loopback."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SESSION = boto3.Session("test", "test", region_name="us-east-1")  # no account's


@contextmanager
def deployed(stack: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Where Lambda answers for `stack`, whose functions have `settings`."""
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    try:
        role = _SESSION.client("iam", endpoint_url=url).create_role(
            RoleName=stack, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []})
        )
        _SESSION.client("lambda", endpoint_url=url).create_function(
            FunctionName=f"{stack}-doors-health",
            Runtime="python3.13",
            Role=role["Role"]["Arn"],
            Handler="doors.health.handler",
            Code={"ZipFile": _code()},
            Environment={"Variables": dict(settings)},
        )
        yield url
    finally:
        server.stop()


def _code() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("handler.py", "")
    return packed.getvalue()
