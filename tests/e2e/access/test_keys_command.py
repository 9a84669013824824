"""`kho keys`, and the start-up output of `kho serve --auth required`."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.data_folder import read_server_info
from tests.helpers.api_client import ApiClient, make_key, run_kho
from tests.helpers.aws_stack import running_aws_stack
from tests.helpers.dynamodb import tcp_url
from tests.helpers.kho_server import KhoServer
from tests.helpers.unauthorized import ADD, LIST, MESSAGE

if TYPE_CHECKING:
    from pathlib import Path


def test_keys_are_made_listed_and_revoked_with_and_without_a_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    before = make_key(data, "t-1", "writer", "--name", "robot", "--expires-in-days", "30")
    assert re.fullmatch(r"kho_[0-9a-f]{16}_[0-9a-f]{64}", before["key"])
    with KhoServer(data, "--auth", "required") as server:
        meanwhile = make_key(data, "t-2", "reader", "--name", "meanwhile")
        assert ApiClient(server, before["key"]).direct(ADD, **MESSAGE)[0] == 200
        assert ApiClient(server, meanwhile["key"]).result(LIST) == {"resources": []}
        server.kill()
        server.start()
        assert ApiClient(server, before["key"]).result(LIST)["resources"]
        make_key(data, "t-2", "reader", "--name", "after")
    listed = json.loads(run_kho("keys", "list", "--data", str(data), "--json").stdout)["keys"]
    assert [(each["tenant_id"], each["role"], each["state"]) for each in listed] == [
        ("t-1", "writer", "active"),
        ("t-2", "reader", "active"),
        ("t-2", "reader", "active"),
    ]
    assert listed[0] | {"key": before["key"]} == before
    listing = run_kho("keys", "list", "--data", str(data), "--tenant", "t-1").stdout
    assert [line.split()[0] for line in listing.splitlines()] == ["id", before["id"]]
    assert before["key"].rpartition("_")[2] not in listing
    assert "was revoked at" in run_kho("keys", "revoke", before["id"], "--data", str(data)).stdout
    assert "revoked" in run_kho("keys", "list", "--data", str(data), "--tenant", "t-1").stdout
    assert all(
        before["key"].rpartition("_")[2] not in file.read_text("latin-1") for file in data.iterdir() if file.is_file()
    )


def test_keys_of_a_deployed_stack_use_the_operators_aws_credentials(guarded: KhoServer) -> None:
    running = read_server_info(guarded.data)
    assert running
    unsigned = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
        "AWS_REGION": "us-east-1",
    }
    with running_aws_stack("kho", {"KHO_ACCESS_TABLE": "kho-AccessTable"}) as functions:
        signed_in = unsigned | {
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_DYNAMODB": tcp_url(running["store_url"]),
            "AWS_ENDPOINT_URL_LAMBDA": functions,
        }
        create = ["keys", "create", "--stack", "kho", "--tenant", "deployed", "--role", "reader", "--json"]
        creation = run_kho(*create, environment=signed_in)
        missing = run_kho("keys", "list", "--stack", "other", environment=signed_in)
        unknown = run_kho(*create, environment=unsigned)
    assert creation.returncode == 0, creation.stderr
    assert ApiClient(guarded, json.loads(creation.stdout)["key"]).direct(LIST)[0] == 200
    assert missing.returncode == 1
    assert "There is no stack 'other' of Kho in us-east-1" in missing.stderr
    assert unknown.returncode == 1
    assert "No AWS credentials" in unknown.stderr
    assert "Traceback" not in missing.stderr + unknown.stderr


WRONG_ARGUMENTS = [
    (["create", "--tenant", "a#b", "--role", "reader"], "cannot be a tenant"),
    (["create", "--tenant", "", "--role", "reader"], "cannot be a tenant"),
    (["create", "--tenant", "a", "--role", "king"], "Invalid value"),
    (["create", "--tenant", "a", "--role", "reader", "--expires-in-days", "0"], "Must be >= 1"),
    (["create", "--tenant", "a", "--role", "reader", "--name", "a\nb"], "printable"),
    (["revoke", "0123456789abcdef"], "No key has this id"),
    (["revoke", "nonsense"], "No key has this id"),
]


def test_wrong_arguments_are_named_and_make_no_key(tmp_path: Path) -> None:
    for arguments, message in WRONG_ARGUMENTS:
        done = run_kho("keys", *arguments, "--data", str(tmp_path))
        assert done.returncode != 0, arguments
        assert message in done.stderr + done.stdout
        assert "Traceback" not in done.stderr
    listed: Any = json.loads(run_kho("keys", "list", "--data", str(tmp_path), "--json").stdout)
    assert listed == {"keys": []}


@pytest.mark.parametrize(
    ("environment", "named"),
    [
        ({"KHO_OIDC_ISSUER": "http://login.example"}, "KHO_OIDC_ISSUER"),
        ({"KHO_OIDC_ISSUER": "https://login.example"}, "KHO_OIDC_AUDIENCE"),
        ({"KHO_OIDC_JWKS_URL": "ftp://login.example/keys"}, "KHO_OIDC_JWKS_URL"),
    ],
)
def test_invalid_settings_are_reported(tmp_path: Path, environment: dict[str, str], named: str) -> None:
    done = run_kho("serve", "--port", "0", "--mqtt-port", "0", "--data", str(tmp_path), environment=environment)
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_startup_output_shows_a_working_call(guarded: KhoServer) -> None:
    printed = guarded.printed().splitlines()
    making = next(line.partition("kho keys ")[2] for line in printed if "kho keys create" in line)
    creation = run_kho("keys", *shlex.split(making.replace("<name>", "newcomer")))
    key = next(line.strip() for line in creation.stdout.splitlines() if line.startswith("  kho_"))
    curl = next(line.strip() for line in printed if line.strip().startswith("curl "))
    done = subprocess.run(curl.replace("<key>", key), shell=True, capture_output=True, check=True)
    assert json.loads(done.stdout)["result"]["conversation_id"].startswith("chat_")
