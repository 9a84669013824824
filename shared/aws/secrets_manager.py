"""Secrets of other services: from the environment with `kho serve`, from Secrets Manager when deployed."""

import json
from typing import Final

from shared.aws import signed_client
from shared.platform.config import require_declared
from shared.platform.http import ConnectionFailed
from shared.platform.runtime import runtime
from shared.platform.telemetry import logger
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import Unavailable

_CONNECT_SECONDS: Final = 2
_READ_SECONDS: Final = 3
KEPT_SECONDS: Final = 900
"""A rotated secret takes effect within this time, or as soon as a service refuses the old one."""
_secrets: Final = TtlCache[str, str](KEPT_SECONDS)


def get_secret(setting: str) -> str:
    """Return the value of `setting`, or else the secret whose ARN is in `{setting}_SECRET`."""
    require_declared(f"{setting}_SECRET")
    value, arn = runtime.environment.get(setting, ""), runtime.environment.get(f"{setting}_SECRET", "")
    return value if value or not arn else _cached_secret(arn)


def forget_secrets() -> None:
    """Read secrets again at their next use, because a service has refused one: it may have been rotated."""
    _secrets.clear()


def _cached_secret(arn: str) -> str:
    """Fetch a secret, and keep it for a quarter of an hour."""
    cached = _secrets.get(arn)
    return _secrets.put(arn, _fetch(arn)) if cached is None else cached


def _fetch(arn: str) -> str:
    try:
        return (_fetch_signed(arn) if signed_client.runs_in_lambda() else _fetch_with_boto3(arn)).strip()
    except ConnectionError as error:
        logger.warning("secret", extra={"failure": str(error)})
        raise Unavailable("A secret cannot be read.") from None


def _fetch_signed(arn: str) -> str:
    service = signed_client.SignedServiceClient(
        "secretsmanager", connect_seconds=_CONNECT_SECONDS, read_seconds=_READ_SECONDS
    )
    headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "secretsmanager.GetSecretValue"}
    try:
        status, _, raw = service.post("/", json.dumps({"SecretId": arn}).encode(), headers)
    except ConnectionFailed as error:
        raise ConnectionError(str(error)) from None
    finally:
        service.close()
    if status != 200:
        raise ConnectionError(f"status {status}")
    secret: str = json.loads(raw)["SecretString"]
    return secret


def _fetch_with_boto3(arn: str) -> str:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    limits = Config(connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS)
    try:
        secret: str = boto3.client("secretsmanager", config=limits).get_secret_value(SecretId=arn)["SecretString"]
    except (BotoCoreError, ClientError) as error:
        raise ConnectionError(type(error).__name__) from None
    return secret
