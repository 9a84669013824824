"""The wheel's contents, and what people do with it first."""

from __future__ import annotations

import json
import subprocess
import zipfile
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from infra.prepare import LOCK, ROOT
from shared.platform.version import VERSION
from shared.rpc.mcp_catalog import mcp_catalog
from tests.helpers.documented_commands import CurlRequest
from tests.helpers.wait import until
from tests.suites.conformance.tools import inspect
from tests.suites.package.installation import UV, await_file, interpreters
from tests.suites.package.readme import first_calls

if TYPE_CHECKING:
    from pathlib import Path

    from tests.suites.package.installation import Installation, Server

MESSAGES: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "editor", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": "list", "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": "call",
        "method": "tools/call",
        "params": {"name": "memory_get_or_create", "arguments": {"conversation_id": "first"}},
    },
]
TOOLS = {each.name for each in mcp_catalog().tools}


def test_wheel_has_one_package_with_everything(wheel: Path) -> None:
    """The wheel has one top-level package, with all sources, the template and the console's packages."""
    names = {each for each in zipfile.ZipFile(wheel).namelist() if not each.split("/")[0].endswith(".dist-info")}
    assert {name.split("/")[0] for name in names} == {"kho"}
    sources = [each for folder in ("functions", "shared") for each in (ROOT / folder).rglob("*.py")]
    assert {f"kho/{each.relative_to(ROOT)}" for each in sources} < names
    console = [each for each in (ROOT / "infra" / "clients" / "console" / "vendor").rglob("*") if each.is_file()]
    assert console
    assert {f"kho/{each.relative_to(ROOT)}" for each in console} < names
    assert {"kho/__init__.py", "kho/template.yaml", "kho/shared/rpc/catalogue.json"} < names
    assert not [
        name for name in names if "__pycache__" in name or name.startswith(("kho/tests", "kho/infra/deploy/wheel"))
    ]


def test_uvx_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """`uvx --from <wheel> kho` runs, outside the checkout."""
    python = next(reversed(interpreters().values()))
    uvx = [UV, "tool", "run", "--quiet", "--python", python, "--constraints", str(LOCK), "--from", str(wheel)]
    process = subprocess.run([*uvx, "kho", "--version"], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert process.stdout == f"{VERSION}\n"


def test_installed_commands_tell_their_version(installed: Installation) -> None:
    """`kho --version` and `research-agent --version` print the version; generating is for a checkout."""
    for program in ("kho", "research-agent"):
        assert installed.run(program, "--version").stdout == f"{VERSION}\n"
    assert installed.run("python", "-m", "kho", "--version").stdout == f"{VERSION}\n"
    refused = installed.run("kho", "generate", "--check")
    assert refused.returncode == 1
    assert "the files of a checkout" in refused.stderr


def test_wheel_answers_the_first_calls_and_keeps_their_data(installed: Installation) -> None:
    """A fresh installation serves, answers the README's first calls, and has their data after a restart."""
    (installed.work / "docs").mkdir()
    for name in ("glossary.md", "architecture.md"):
        (installed.work / "docs" / name).write_bytes((ROOT / "docs" / name).read_bytes())
    calls = first_calls()
    background = [each[:-1] for each in calls if isinstance(each, list) and each[-1] == "&"]
    with installed.serving() as server, installed.background(background):
        for each in calls:
            if isinstance(each, CurlRequest):
                until(partial(_succeeds, server, each))  # the devices may still be connecting
            elif each[-1] != "&":
                process = installed.run(*each)
                assert process.returncode == 0, process.stderr + process.stdout
        assert f"Data is kept in {installed.home / '.local' / 'share' / 'kho'}" in server.printed
        assert server.request("GET", "/console/").status == 200
    assert not (installed.work / ".kho").exists()
    with installed.serving() as server:
        assert "Preparing" not in server.printed
        question = json.dumps({"query": "PF setup"})
        answer = server.request("POST", "/agent-data/query_knowledge", question, **{"content-type": "application/json"})
        assert [each["document_id"] for each in answer.json()["context"]] == ["doc-pf"]
    process = installed.run("research-agent", "query", "what is a method?", "--collections", "notes", "--json")
    assert json.loads(process.stdout)["results"]


def test_inspector_lists_the_tools_of_an_installed_kho(installed: Installation) -> None:
    """`kho mcp` lists every tool to the Inspector's command line, without a server that runs already."""
    settings = ["-e", f"HOME={installed.home}", "-e", f"PATH={installed.environment['PATH']}"]
    listed = inspect(installed.command("kho", "mcp", *settings), "tools/list")
    assert {each["name"] for each in listed["tools"]} == TOOLS


def test_first_start_goes_on_after_an_editor_gave_up(installed: Installation, tmp_path: Path) -> None:
    """A session lists the tools during the first start, which goes on if the session ends; the next one calls them."""
    cache = tmp_path / ".cache" / "kho"
    with _session(installed, tmp_path) as session:
        assert {each["name"] for each in _result(session, "list")["tools"]} == TOOLS
        await_file(cache, "e5_model.lock")
        session.kill()
    await_file(cache, "dynoxide-*/node_modules/@dynoxide/*/dynoxide")
    with _session(installed, tmp_path) as session:
        assert _result(session, "call")["structuredContent"]["conversation_id"] == "first"
        session.terminate()


def _session(installed: Installation, home: Path) -> subprocess.Popen[str]:
    """Start an editor's session, which lists the tools and calls one, in a home folder of its own."""
    environment = installed.environment | {"HOME": str(home)}
    session = subprocess.Popen(
        installed.command("kho", "mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=home,
    )
    assert session.stdin
    session.stdin.writelines(f"{json.dumps(message)}\n" for message in MESSAGES)
    session.stdin.flush()
    return session


def _result(session: subprocess.Popen[str], id_: str) -> Any:
    """Return the result of a request, once the session has written it."""
    assert session.stdout
    answers = map(json.loads, session.stdout)
    return next(answer["result"] for answer in answers if answer.get("id") == id_)


def _succeeds(server: Server, call: CurlRequest) -> bool:
    return server.request(call.method, call.path, call.body, **call.headers).status == HTTPStatus.OK
