"""`kho migrate` on a deployed stack and on a data folder, and the refusal of data of a newer program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from infra.clients.cli.target import short_name
from infra.local.template import load
from shared.aws.attribute_values import marshal, unmarshal
from shared.aws.dynamodb import Table, Write
from shared.migrations.formats import FORMAT_KEY, current_format
from shared.platform.version import VERSION
from tests.helpers.api_client import run_kho
from tests.helpers.aws_stack import ENVIRONMENT, running_aws_stack
from tests.helpers.dynamodb import store_of
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from pathlib import Path

ANY_PORT = {"KHO_PORT": "0", "KHO_MQTT_PORT": "0"}
PK, SK = FORMAT_KEY
NEWER = {"format": 9, "program": "8.0.0"}
REFUSAL = f"has format 9, and Kho {VERSION} reads formats up to 1: use Kho 8.0.0 or newer."


def findings(*options: str) -> dict[str, Any]:
    """Return what the doctor finds, by subject."""
    return {each["subject"]: each for each in json.loads(run_kho("doctor", "--json", *options).stdout)["findings"]}


def test_stack_is_migrated_with_operator_credentials() -> None:
    """`kho migrate --stack` lists documents deleted by earlier revisions; a second run has nothing to do."""
    settings = {f"KHO_{short_name(each).upper()}_TABLE": each.name.replace("kho-", "acme-") for each in load().tables}
    with running_aws_stack("acme", settings) as url:
        store = boto3.Session("test", "test", region_name="us-east-1").client("dynamodb", endpoint_url=url)
        for definition in load().tables:
            name = definition.name.replace("kho-", "acme-")
            if name not in store.list_tables()["TableNames"]:
                store.create_table(TableName=name, **definition.creation)
        position = {"document_id": "a", "parent_id": "root", "order_key": "V", "delete_at": 7, "gone": True}
        item = {"pk": "t#document#a", "sk": "position"} | position
        store.put_item(TableName="acme-DocumentsTable", Item=marshal(item))
        environment = ENVIRONMENT | {"AWS_ENDPOINT_URL": url}
        first, second = (run_kho("migrate", "--stack", "acme", "--json", environment=environment) for _ in range(2))
        assert first.returncode == second.returncode == 0, first.stderr + second.stderr
        assert json.loads(first.stdout)["documents"] == 1
        assert json.loads(second.stdout) == {}
        key = marshal({"pk": "t#bin", "sk": "00000000000000000007#a"})
        stored = store.get_item(TableName="acme-DocumentsTable", Key=key)
        assert unmarshal(stored["Item"])["document_id"] == "a"
        newer = {"pk": PK, "sk": SK} | NEWER
        store.put_item(TableName="acme-DevicesTable", Item=marshal(newer))
        third = run_kho("migrate", "--stack", "acme", environment=environment)
    assert third.returncode == 1
    assert f"kho: The table acme-DevicesTable {REFUSAL}" in third.stderr


@pytest.mark.parametrize(
    ("file", "place"), [("format.json", "The data folder {}"), ("passages/space.json", "The index {}/passages")]
)
def test_newer_folder_or_index_is_refused_by_name(tmp_path: Path, file: str, place: str) -> None:
    """An older program starts on neither a newer data folder nor a folder with a newer index."""
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(json.dumps(NEWER))
    for command in ("serve", "migrate"):
        done = run_kho(command, "--data", str(tmp_path), environment=ANY_PORT)
        assert done.returncode == 1
        assert f"kho: {place.format(tmp_path)} {REFUSAL}" in done.stderr
    assert not (tmp_path / "dynamodb.sqlite").exists()


def test_format_of_a_table_is_refused_if_newer_and_reported_if_older(tmp_path: Path) -> None:
    """An older program does not serve a newer table. The doctor reports both, and names the command."""
    with KhoServer(tmp_path / "data") as server:
        options = ("--data", str(server.data))
        assert "Migrating" not in server.printed()
        assert json.loads((server.data / "format.json").read_text()) == {"format": 1, "program": VERSION}
        assert findings(*options)["kho-MemoryTable"]["message"] == "It is active, with format 1."
        assert "There is nothing to do" in run_kho("migrate", *options).stdout
        with store_of(server.data):
            Table("kho-DocumentsTable").delete_all([FORMAT_KEY])
            older = findings(*options)["kho-DocumentsTable"]
            this = current_format("documents")
            assert (older["state"], older["message"]) == ("note", f"It has format 0; this program's is {this}.")
            assert "kho migrate" in older["advice"]
            assert server.call("tool-server/system/check")["healthy"]
            Table("kho-MemoryTable").write(Write("Put", {"pk": PK, "sk": SK} | NEWER))
            newer = findings(*options)["kho-MemoryTable"]
            assert (newer["state"], newer["message"]) == ("wrong", f"The table {REFUSAL}")
            assert not server.call("tool-server/system/check")["healthy"]
        for command in ("migrate", "serve"):
            if command == "serve":
                server.interrupt()
            done = run_kho(command, *options, environment=ANY_PORT)
            assert done.returncode == 1
            assert f"kho: The table kho-MemoryTable {REFUSAL}" in done.stderr
