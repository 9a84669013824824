"""Keys of what Kho stands on: in the environment of one machine, in Secrets Manager where functions are deployed."""

from __future__ import annotations

import os
from functools import cache

from shared.rpc.errors import Unavailable
from shared.telemetry import logger


def secret(setting: str) -> str:
    """The key that `setting` holds, or the secret whose ARN `{setting}_SECRET` holds."""
    given, arn = os.environ.get(setting, ""), os.environ.get(f"{setting}_SECRET", "")
    return given if given or not arn else _kept(arn)


@cache
def _kept(arn: str) -> str:
    """A secret, fetched once a process."""
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    limits = Config(connect_timeout=2, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2})
    try:
        found = boto3.client("secretsmanager", config=limits).get_secret_value(SecretId=arn)
    except (BotoCoreError, ClientError) as error:
        logger.warning("secret", extra={"failure": type(error).__name__})
        raise Unavailable("A key cannot be read.") from None
    kept: str = found["SecretString"]
    return kept.strip()
