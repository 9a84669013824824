"""Data folders of earlier releases: this program reads all that is in them, and `kho serve` migrates them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.api_client import ApiClient, run_kho
from tests.helpers.kho_server import KhoServer
from tests.helpers.oauth_client import PUBLIC_URL
from tests.helpers.oauth_person import Person
from tests.helpers.releases import QUESTION, RELEASES, TENANT, ReleaseData, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module", params=sorted(RELEASES.iterdir()), ids=lambda archive: archive.name.partition(".")[0])
def archive(request: pytest.FixtureRequest) -> Path:
    packed: Path = request.param
    return packed


@pytest.fixture(scope="module")
def release(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> ReleaseData:
    return unpack(archive, tmp_path_factory.mktemp("release") / "data")


@pytest.fixture(scope="module")
def upgraded(release: ReleaseData) -> Iterator[KhoServer]:
    """Serve the folder by this program."""
    with KhoServer(release.folder, "--auth", "required", "--public-url", PUBLIC_URL) as server:
        yield server


@pytest.fixture(scope="module")
def call(release: ReleaseData, upgraded: KhoServer) -> Any:
    """Return calls by the key that the release gave out."""
    return ApiClient(upgraded, release.secrets["key"]["key"]).result


def test_documents_are_read_with_their_history(call: Any) -> None:
    """A document, its earlier revision and its audit log are those of the release."""
    get = "agent-data/get_document"
    assert "dawn" in call(get, document_id="ferns")["content"]["body"]
    assert call(get, document_id="ferns", revision=2)["content"]["body"] == "Ferns are watered at noon."
    history = call("agent-data/document_history", document_id="ferns")["history"]
    assert [each["action"] for each in history] == ["create_document", "update_document", "update_document"]


def test_documents_that_earlier_revisions_deleted_are_listed(call: Any) -> None:
    """`list_deleted` has every deleted document of the top level, and one with its documents can be restored."""
    children = call("agent-data/list_children", parent_id="root", deleted=True)["children"]
    deleted = {each["document_id"] for each in children}
    assert deleted == {each["document_id"] for each in call("agent-data/list_deleted")["documents"]}
    oldest = min(children, key=lambda each: str(each["updated_at"]))["document_id"]
    call("agent-data/restore_document", document_id=oldest, recursive=True)
    below = call("agent-data/list_children", parent_id=oldest)["children"]
    assert [each["document_id"] for each in below] == [oldest.replace("gone", "below")]
    assert deleted - {oldest} == {each["document_id"] for each in call("agent-data/list_deleted")["documents"]}


def test_conversations_are_read(call: Any) -> None:
    messages = call("memory-server/memory/get_all_messages", conversation_id="chat")["messages"]
    assert [(each["role"], each["content"]) for each in messages] == [("user", QUESTION), ("assistant", "At dawn.")]
    assert "dawn" in call("memory-server/memory/get_summary", conversation_id="chat")["summary"]


def test_experiences_and_knowledge_are_found(call: Any) -> None:
    """Searches of the index that the release made find its documents, experiences and files."""
    assert "dawn" in json.dumps(call("agent-data/query_knowledge", query=QUESTION))
    assert "turn brown" in json.dumps(call("recall-kit/query_experiences", keywords="brown ferns"))
    found = call("research-agent/query_knowledge_base", query=QUESTION, project_name="balcony")
    assert "plants/ferns.md" in json.dumps(found)
    assert "notes" in json.dumps(call("research-agent/manage_projects", action="info", project_name="balcony"))


def test_devices_firmware_and_webhook_are_kept(call: Any) -> None:
    """Registered devices are listed, the simulated ones connect again, and settings are those of the release."""
    ids = {each["device_id"] for each in call("device-server/devices/list")["devices"]}
    simulated = {each["device_id"] for each in call("device-server/devices/simulate")["devices"]}
    assert ids == simulated | {"lamp-1"}
    assert call("device-server/tools/list", device_id=min(simulated))["tools"]
    assert [each["version"] for each in call("device-server/firmware/list")["firmware"]] == ["2.4.3"]
    assert call("device-server/webhooks/get")["url"] == "https://hooks.invalid/kho"


def test_grants_and_their_tokens_are_valid(release: ReleaseData, upgraded: KhoServer) -> None:
    """A client that signed in at the release refreshes its token and calls."""
    person = Person(upgraded)
    person.client.client_id = release.secrets["client_id"]
    renewed = person.client.refresh(release.secrets["tokens"]["refresh_token"])
    assert renewed.status == 200, renewed.body
    bearer = f"Bearer {renewed.json['access_token']}"
    request = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    tools = upgraded.post("/mcp", request, authorization=bearer, accept="application/json, text/event-stream")
    assert tools.status == 200, tools.data
    listed = run_kho("grants", "list", "--tenant", TENANT, "--data", str(release.folder), "--json")
    (grant,) = json.loads(listed.stdout)["grants"]
    assert (grant["client_name"], grant["state"]) == ("Notes", "active")


def test_start_migrates_and_nothing_is_left_to_do(release: ReleaseData, upgraded: KhoServer) -> None:
    """The start of `kho serve` has brought each table to this program's format."""
    migration = run_kho("migrate", "--data", str(release.folder), "--json")
    assert json.loads(migration.stdout) == {}
    checks = json.loads(run_kho("doctor", "--data", str(release.folder), "--json").stdout)["findings"]
    assert {each["state"] for each in checks if each["subject"].endswith("Table")} == {"good"}


def test_passages_of_an_earlier_splitter_are_made_again_once(archive: Path, tmp_path: Path) -> None:
    """The doctor asks for `kho reindex`, which makes older passages again and nothing else."""
    options = ("--data", str(unpack(archive, tmp_path / "data").folder), "--json")

    def state() -> Any:
        checks = json.loads(run_kho("doctor", *options).stdout)["findings"]
        return next(each["state"] for each in checks if each["subject"] == "Passages")

    older = state() == "note"
    first, second = (json.loads(run_kho("reindex", *options).stdout)["indexed"] for _ in range(2))
    assert (first > 0, second, state()) == (older, 0, "good")
