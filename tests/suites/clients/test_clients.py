"""Each client does the plan against `kho serve`, and its model is shown what Kho has answered."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pytest

from infra.local.iot.simulator.fleet import Fleet
from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.kho_server import KhoServer
from tests.helpers.wait import until
from tests.suites.clients.clients import CLIENTS, SDK
from tests.suites.clients.model_apis import find_tool, planned_model
from tests.suites.clients.plan import LAMP, OFFLINE, planned
from tests.suites.clients.schema_rules import Tool, problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.suites.clients.clients import Client
    from tests.suites.clients.plan import Call

_PROVIDERS: Final = ("openai", "anthropic", "gemini")
_NO_ERROR: Final = re.compile(r"\"?is_?error\"?[:=] ?false")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KhoServer]:
    """Serve, with a device that is connected and one that was."""
    data = tmp_path_factory.mktemp("clients") / "data"
    with KhoServer(data) as server, Fleet("127.0.0.1", server.mqtt_port, [LAMP]) as fleet:
        with Fleet("127.0.0.1", server.mqtt_port, [OFFLINE]) as gone:
            for each in (fleet, gone):
                each.start()
                server.call("device-server/tools/list", device_id=each.devices[0].device_id)
        until(lambda: not server.call("device-server/devices/get", device_id=OFFLINE)["connected"])
        yield server


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.title)
def test_client_does_the_plan(
    client: Client, server: KhoServer, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A client lists all tools, its provider takes them, its calls succeed, and failures say what to do."""
    plan = planned(uuid4().hex[:8])
    tools, results, refused = _outcome(client, plan, f"{server.address}/mcp", tmp_path)
    shown = {call.label: text for call, text in zip(plan, results, strict=False)}
    record_property("client", client.title)
    record_property("shown", shown)
    names = [tool.name for tool in mcp_catalog().tools]
    unlisted = [name for name in names if find_tool(tools, name) is None]
    record_property("tools", f"{len(names) - len(unlisted)} of {len(names)}")
    assert unlisted == []
    assert refused == []
    assert len(results) == len(plan), f"after {plan[len(results) - 1].label}: {results[-1:]}"
    missing = {call.label: shown[call.label] for call in plan if not is_shown(call, shown[call.label])}
    assert {label: text[:600] for label, text in missing.items() if label not in client.spoils} == {}
    assert missing.keys() == client.spoils.keys(), "the client no longer spoils these"


def is_shown(call: Call, text: str) -> bool:
    """Return True if a result's text has the planned words, and tells of a failure if the call has failed alone."""
    words = _NO_ERROR.sub("", text.lower())
    tells_of_failure = "error" in words or "fail" in words
    return all(word in text for word in call.words) and (call.fails or not tells_of_failure)


def _outcome(client: Client, plan: Sequence[Call], url: str, folder: Path) -> tuple[list[Tool], list[str], list[str]]:
    """Return the tools, the texts of results, and the reasons for which a provider refuses."""
    if client.model:
        with planned_model(plan) as model:
            client.run(url, model.address, folder)
            return model.tools, model.results, model.problems
    calls = [{"name": call.tool, "arguments": call.arguments} for call in plan]
    (folder / "plan.json").write_text(json.dumps(calls))
    answer = json.loads(client.run(url, "", folder))
    tools = [Tool(each["name"], each["inputSchema"], each["description"]) for each in answer["tools"]]
    return tools, answer["results"], [f"{name}: {each}" for name in _PROVIDERS for each in problems(name, tools)]


def test_a_client_edits_a_large_document_in_few_bytes(server: KhoServer, tmp_path: Path) -> None:
    """Arguments and answers of an edit of 1 MiB, of its history and of its undoing are small."""
    name = f"large-{uuid4().hex[:8]}"
    lines = "".join(f"Line {number} of many.\n" for number in range(60_000))
    body = f"# Guide\n\n{lines}\n## Water\n\nAt noon.\n"
    assert len(body) > 2**20
    server.call("agent-data/create_document", document_id=name, parent_id="root", content={"body": body})
    edits = [
        {"replace": {"old": "Line 25000 of", "new": "Line 25,000 of"}},
        {"section": {"heading": ["Guide", "Water"], "body": "At dawn."}},
        {"metadata": {"status": "checked"}},
    ]
    plan = [
        ("edit_document", {"document_id": name, "edits": edits}),
        ("document_history", {"document_id": name, "newest_first": True, "limit": 1}),
        ("edit_document", {"document_id": name, "edits": [{"restore_revision": 1}]}),
    ]
    (tmp_path / "plan.json").write_text(json.dumps([{"name": tool, "arguments": each} for tool, each in plan]))
    results = json.loads(SDK.run(f"{server.address}/mcp/documents", "", tmp_path))["results"]
    edited, history, restored = map(json.loads, results)
    line = "replaced line 25003; section Guide > Water: line 60006; metadata: set status"
    assert (edited["revision"], edited["changes"]) == (2, line)
    (entry,) = history["history"]
    assert (entry["action"], entry["changes"], entry["by"]["sub"]) == ("edit_document", line, "local")
    assert restored["revision"] == 3
    sent = sum(len(json.dumps(arguments).encode()) for _, arguments in plan)
    assert sent + sum(len(each.encode()) for each in results) <= 2_000
    document = server.call("agent-data/get_document", document_id=name)
    assert (document["content"]["body"] == body, document["metadata"]) == (True, {})
    changed = server.call("agent-data/get_document", document_id=name, revision=2)["content"]["body"]
    assert changed == body.replace("Line 25000", "Line 25,000").replace("At noon.", "At dawn.")
