"""Keys: from the environment on one machine, from Secrets Manager once a process where functions are deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from shared.rpc.errors import Unavailable
from shared.secrets import _kept, secret

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The ARN of a secret that Secrets Manager keeps."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    _kept.cache_clear()
    with mock_aws():
        yield boto3.client("secretsmanager").create_secret(Name="kho/key", SecretString="sk-1\n")["ARN"]
    _kept.cache_clear()


def test_a_key_in_the_environment_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert secret("KHO_TEST_KEY") == ""
    monkeypatch.setenv("KHO_TEST_KEY", "plain")
    monkeypatch.setenv("KHO_TEST_KEY_SECRET", "arn:aws:secretsmanager:eu-central-1:1:secret:unread")
    assert secret("KHO_TEST_KEY") == "plain"


def test_a_secret_is_fetched_once(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_TEST_KEY_SECRET", kept)
    assert secret("KHO_TEST_KEY") == "sk-1"
    boto3.client("secretsmanager").put_secret_value(SecretId=kept, SecretString="sk-2")
    assert secret("KHO_TEST_KEY") == "sk-1"


def test_a_secret_that_cannot_be_read_is_asked_for_again(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_TEST_KEY_SECRET", f"{kept}-not")
    with pytest.raises(Unavailable):
        secret("KHO_TEST_KEY")
    boto3.client("secretsmanager").create_secret(Name=f"{kept.rpartition(':')[2]}-not", SecretString="late")
    monkeypatch.setenv("KHO_TEST_KEY_SECRET", f"{kept.rpartition(':')[2]}-not")
    assert secret("KHO_TEST_KEY") == "late"
