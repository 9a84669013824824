"""Kho's own credentials: from the environment on one machine, from Secrets Manager in deployed functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from shared.aws import secrets_manager
from shared.aws.secrets_manager import KEPT_SECONDS, forget_secrets, get_secret
from shared.platform.ttl_cache import TtlCache
from shared.rpc.errors import Unavailable
from tests.helpers.clock import Clock
from tests.helpers.device_backend import running_device_backend
from tests.helpers.wait import until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["operator", "function"])
def manager(request: pytest.FixtureRequest, address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield Secrets Manager as an operator's command or a function reaches it."""
    variables = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-central-1"}
    for name, value in (variables | {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_ENDPOINT_URL": address}).items():
        monkeypatch.setenv(name, value)
    if request.param == "function":
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "kho-workers-index_documents")
    forget_secrets()
    yield boto3.client("secretsmanager")
    forget_secrets()


@pytest.fixture
def arn(manager: Any, tenant: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the ARN of a secret that KHO_TEST_KEY_SECRET names."""
    made: str = manager.create_secret(Name=tenant, SecretString="sk-1\n")["ARN"]
    monkeypatch.setenv("KHO_TEST_KEY_SECRET", made)
    return made


def test_environment_value_is_used_verbatim(arn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_secret("KHO_OTHER_KEY") == ""
    monkeypatch.setenv("KHO_TEST_KEY", "plain")
    assert get_secret("KHO_TEST_KEY") == "plain"


def test_a_secret_is_kept_for_a_quarter_of_an_hour(manager: Any, arn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    time = Clock()
    monkeypatch.setattr(secrets_manager, "_secrets", TtlCache(KEPT_SECONDS, clock=time))
    assert KEPT_SECONDS == 900
    assert get_secret("KHO_TEST_KEY") == "sk-1"
    manager.put_secret_value(SecretId=arn, SecretString="sk-2")
    assert get_secret("KHO_TEST_KEY") == "sk-1"
    time.advance(KEPT_SECONDS + 1)
    assert get_secret("KHO_TEST_KEY") == "sk-2"


def test_a_refused_secret_is_fetched_again(manager: Any, arn: str) -> None:
    assert get_secret("KHO_TEST_KEY") == "sk-1"
    manager.put_secret_value(SecretId=arn, SecretString="sk-2")
    forget_secrets()
    assert get_secret("KHO_TEST_KEY") == "sk-2"


def test_failed_secret_fetch_is_retried(manager: Any, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_TEST_KEY_SECRET", tenant)
    with pytest.raises(Unavailable):
        get_secret("KHO_TEST_KEY")
    manager.create_secret(Name=tenant, SecretString="late")
    assert get_secret("KHO_TEST_KEY") == "late"


def test_unreachable_secrets_manager_is_unavailable(arn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(Unavailable):
        get_secret("KHO_TEST_KEY")


def test_device_token_is_read_from_the_secret(manager: Any, tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = manager.create_secret(Name=tenant, SecretString="shown-by-cameras")["ARN"]
    monkeypatch.setenv("KHO_VISION_URL", "https://vision.example/explain")
    monkeypatch.setenv("KHO_VISION_TOKEN_SECRET", made)
    with running_device_backend() as home, home.device() as one:
        until(lambda: one.known)
        assert one.text("self.test.echo", text="x") == "x"
        [request] = one.sent("initialize")
        assert request["params"]["capabilities"]["vision"] == {
            "url": "https://vision.example/explain",
            "token": "shown-by-cameras",
        }


def test_unused_token_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_VISION_TOKEN_SECRET", "arn:aws:secretsmanager:nowhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with running_device_backend() as home, home.device() as one:
        until(lambda: one.known)
        assert one.text("self.test.echo", text="x") == "x"
