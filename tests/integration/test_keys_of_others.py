"""What others know Kho by: in the environment of one machine, in Secrets Manager where functions are deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from shared.rpc.errors import Unavailable
from shared.secrets import _kept, secret
from tests.devices import running_home
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
    """Secrets Manager, asked by an operator's command or by a function."""
    given = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-central-1"}
    for name, value in (given | {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_ENDPOINT_URL": address}).items():
        monkeypatch.setenv(name, value)
    if request.param == "function":
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "kho-workers-index_documents")
    _kept.cache_clear()
    yield boto3.client("secretsmanager")
    _kept.cache_clear()


@pytest.fixture
def arn(manager: Any, tenant: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A secret that KHO_TEST_KEY_SECRET names."""
    made: str = manager.create_secret(Name=tenant, SecretString="sk-1\n")["ARN"]
    monkeypatch.setenv("KHO_TEST_KEY_SECRET", made)
    return made


def test_a_key_in_the_environment_is_taken_as_it_is(arn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert secret("KHO_OTHER_KEY") == ""
    monkeypatch.setenv("KHO_TEST_KEY", "plain")
    assert secret("KHO_TEST_KEY") == "plain"


def test_a_secret_is_fetched_once(manager: Any, arn: str) -> None:
    assert secret("KHO_TEST_KEY") == "sk-1"
    manager.put_secret_value(SecretId=arn, SecretString="sk-2")
    assert secret("KHO_TEST_KEY") == "sk-1"


def test_a_secret_that_cannot_be_read_is_asked_for_again(
    manager: Any, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KHO_TEST_KEY_SECRET", tenant)
    with pytest.raises(Unavailable):
        secret("KHO_TEST_KEY")
    manager.create_secret(Name=tenant, SecretString="late")
    assert secret("KHO_TEST_KEY") == "late"


def test_where_nobody_answers_it_is_unavailable(arn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(Unavailable):
        secret("KHO_TEST_KEY")


def test_devices_are_told_the_token_that_a_secret_holds(
    manager: Any, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = manager.create_secret(Name=tenant, SecretString="shown-by-cameras")["ARN"]
    monkeypatch.setenv("KHO_VISION_URL", "https://vision.example/explain")
    monkeypatch.setenv("KHO_VISION_TOKEN_SECRET", made)
    with running_home() as home, home.device() as one:
        until(lambda: one.known)
        assert one.text("self.test.echo", text="x") == "x"
        [asked] = one.sent("initialize")
        assert asked["params"]["capabilities"]["vision"] == {
            "url": "https://vision.example/explain",
            "token": "shown-by-cameras",
        }


def test_a_token_that_nobody_asks_for_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KHO_VISION_TOKEN_SECRET", "arn:aws:secretsmanager:nowhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with running_home() as home, home.device() as one:
        until(lambda: one.known)
        assert one.text("self.test.echo", text="x") == "x"
