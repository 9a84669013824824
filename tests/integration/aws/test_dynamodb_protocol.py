"""The DynamoDB client of functions: signatures equal botocore's, values equal boto3's, errors are retried."""

from __future__ import annotations

import json
import os
import threading
import zlib
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from shared.aws import attribute_values, dynamodb, signed_client
from shared.aws.dynamodb import ConditionFailed, Keys, Table, Write
from shared.aws.dynamodb_client import DynamoDBHttpClient
from shared.platform.config import config
from shared.rpc.errors import Unavailable
from tests.helpers.dynamodb import boto3_client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Answer = tuple[int, Any]

FULL = "commit failed (backend: database or disk is full) and rollback also failed"
NUMBERS = st.integers(-(10**30), 10**30) | st.decimals(-1000, 1000, places=3)
VALUES = st.recursive(
    st.text() | st.booleans() | st.none() | NUMBERS | st.binary(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(min_size=1), inside, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def in_lambda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Configure this process like a function's."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "kho-test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    dynamodb.override_client(None)
    yield
    dynamodb.override_client(None)


@given(item=st.dictionaries(st.text(min_size=1), VALUES))
def test_attribute_values_equal_boto3(item: dict[str, Any]) -> None:
    noted = attribute_values.marshal(item)
    assert noted == {name: TypeSerializer().serialize(value) for name, value in item.items()}
    assert attribute_values.unmarshal(noted) == item
    boto3_reads = {name: TypeDeserializer().deserialize(value) for name, value in noted.items()}
    assert boto3_reads == attribute_values.unmarshal(noted)


@given(
    body=st.binary(),
    path=st.sampled_from(["/", "/2015-03-31/functions/kho-discovery-health/invocations"]),
    target=st.text("abcXYZ.-_ 019", min_size=1).filter(lambda text: "  " not in text),
    token=st.text("abc+/="),
)
def test_signature_equals_botocore(body: bytes, path: str, target: str, token: str) -> None:
    key, secret = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_REGION", "ap-southeast-1")
        patch.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)
        service = signed_client.SignedServiceClient("dynamodb", connect_seconds=1, read_seconds=1)
    own = signed_client.Credentials(key, secret, token)
    ours = service.sign(path, body, {"X-Amz-Target": target}, own, datetime.now(UTC))
    credentials = Credentials(key, secret, token or None)
    theirs = AWSRequest("POST", service.url + path, {"X-Amz-Target": target}, body)
    with pytest.MonkeyPatch.context() as patch:
        at = datetime.strptime(ours["x-amz-date"], "%Y%m%dT%H%M%SZ")  # noqa: DTZ007 - as in botocore
        patch.setattr("botocore.auth.get_current_datetime", lambda: at)
        SigV4Auth(credentials, "dynamodb", "ap-southeast-1").add_auth(theirs)
    assert service.url == "https://dynamodb.ap-southeast-1.amazonaws.com"
    assert ours["authorization"] == theirs.headers["Authorization"]


@pytest.mark.parametrize("whose", ["functions", "operators"])
def test_all_store_operations(whose: str, in_lambda: None, tenant: str, store: str) -> None:
    dynamodb.override_client(boto3_client(store) if whose == "operators" else None)
    table = Table(config().memory_table)
    assert isinstance(dynamodb.client(), DynamoDBHttpClient) is (whose == "functions")
    key = {"pk": tenant, "sk": "a"}
    table.write(Write("Put", key | {"B": b"\x00\xff", "n": Decimal("1.5"), "text": "Xin chào"}))
    assert table.get(tenant, "a") == key | {"B": b"\x00\xff", "n": Decimal("1.5"), "text": "Xin chào"}
    updating = Write("Update", key, expression="ADD n :one", values={":one": 1})
    assert table.write(updating)["n"] == Decimal("2.5")
    with pytest.raises(ConditionFailed):
        table.write(Write("Put", key, condition="attribute_not_exists(pk)"))
    others = [Write("Put", {"pk": tenant, "sk": sk}) for sk in "bc"]
    table.transact(*others)
    with pytest.raises(ConditionFailed) as caught:
        table.transact(others[0], Write("Put", key, condition="attribute_not_exists(pk)"))
    assert caught.value.failed == (1,)
    assert [item["sk"] for page in table.query(tenant, Keys.after(" ")) for item in page] == ["a", "b", "c"]
    assert table.count(tenant, Keys.after("a")) == 2
    assert len(list(table.get_all((tenant, sk) for sk in "abcd"))) == 3
    table.delete_all((tenant, sk) for sk in "bc")
    table.write(Write("Delete", key))
    assert table.get(tenant, "a") is None


class Scripted:
    """A store with one scripted answer per request and a record of its requests."""

    def __init__(self, answers: list[Answer | None], spoil: Callable[[bytes], bytes] = bytes) -> None:
        self.asked: list[Any] = []
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                scripted.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                answer = answers.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                raw = json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("content-length", str(len(raw)))
                self.send_header("x-amz-crc32", str(zlib.crc32(raw)))
                self.end_headers()
                self.wfile.write(spoil(raw) if len(scripted.asked) == 1 else raw)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,)).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def scripted(in_lambda: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Scripted]]:
    made: list[Scripted] = []

    def serve(*answers: Answer | None, **more: Any) -> Scripted:
        made.append(Scripted(list(answers), **more))
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", made[-1].url)
        return made[-1]

    yield serve
    for each in made:
        each.close()


FOUND = (200, {"Item": {"pk": {"S": "x"}}})


@pytest.mark.parametrize(
    "first",
    [
        None,
        (500, {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError"}),
        (400, {"__type": "com.amazon.coral.availability#ThrottlingException", "message": "slow down"}),
    ],
)
def test_transient_errors_are_retried(scripted: Callable[..., Scripted], first: Answer | None) -> None:
    store = scripted(first, FOUND, FOUND)
    table = Table("t")
    assert table.get("x", "y") == {"pk": "x"}
    assert table.get("x", "y") == {"pk": "x"}
    assert len(store.asked) == 3


def test_checksum_mismatch_is_rejected(scripted: Callable[..., Scripted]) -> None:
    store = scripted(FOUND, FOUND, spoil=lambda raw: raw.replace(b"x", b"y"))
    assert Table("t").get("x", "y") == {"pk": "x"}
    assert len(store.asked) == 2


def test_persistent_errors_are_unavailable(scripted: Callable[..., Scripted]) -> None:
    store = scripted(None, None, None)
    with pytest.raises(Unavailable, match=r"^The store is not answering\.$"):
        Table("t").get("x", "y")
    assert len(store.asked) == 3


def test_log_names_the_table(
    scripted: Callable[..., Scripted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KHO_LOG_FILE", str(tmp_path / "kho.log"))
    full = (500, {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": FULL})
    scripted(full, full, full)
    with pytest.raises(Unavailable, match=r"^The disk is full\.$") as refused:
        Table("kho-MemoryTable").get("x", "y")
    assert "Free disk space" in refused.value.guidance
    record = json.loads((tmp_path / "kho.log").read_text())
    assert (record["table"], record["failure"]) == ("kho-MemoryTable", f"InternalServerError: {FULL}")


def test_retried_transaction_keeps_its_client_token(scripted: Callable[..., Scripted]) -> None:
    store = scripted(None, (200, {}), (200, {}))
    table = Table("t")
    table.transact(Write("Put", {"pk": "x", "sk": "y"}))
    table.transact(Write("Put", {"pk": "x", "sk": "y"}))
    once, again, another = (requests["ClientRequestToken"] for requests in store.asked)
    assert once == again != another


def test_client_errors_are_not_retried(scripted: Callable[..., Scripted]) -> None:
    refusal = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "no"}
    store = scripted((400, refusal))
    with pytest.raises(ConditionFailed):
        Table("t").write(Write("Put", {"pk": "x", "sk": "y"}))
    assert len(store.asked) == 1


def test_container_credentials_are_refreshed_before_expiry(
    in_lambda: None, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasting = {"AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C", "Expiration": "2999-01-01T00:00:00Z"}
    ending = lasting | {"Expiration": "2026-01-01T00:00:00Z"}
    requests: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.headers["authorization"])
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(ending if len(requests) == 1 else lasting).encode())

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"http://127.0.0.1:{server.server_port}/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "word")
        table = Table(config().memory_table)
        for _ in range(3):
            assert table.get(tenant, "none") is None
        server.shutdown()
    assert requests == ["word", "word"]


def test_local_server_signs_with_the_configured_profile(
    tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "credentials").write_text("[kho]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "kho")
    signed_client._botocore_credentials.cache_clear()
    assert signed_client.Credentials.current().key == "AKIDPROFILE"
    signed_client._botocore_credentials.cache_clear()
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    dynamodb.override_client(None)
    with pytest.raises(Unavailable):
        Table(config().memory_table).get(tenant, "none")
    dynamodb.override_client(None)
    signed_client._botocore_credentials.cache_clear()


def test_real_credentials_are_never_sent_to_the_local_store(tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Container credentials belong to the container's own account."""
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/credentials")
    dynamodb.override_client(None)
    assert Table(config().memory_table).get(tenant, "none") is None
    assert signed_client.Credentials.current().key == os.environ["AWS_ACCESS_KEY_ID"]
    dynamodb.override_client(None)
