"""`kho env`: a function with the written settings runs on the stores of the running server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from infra.local.template import FILE, load
from tests.events import TENANT, event
from tests.helpers.api_client import run_kho
from tests.helpers.kho_server import KhoServer

if TYPE_CHECKING:
    from pathlib import Path

INVOKE = """
import importlib, json, sys
handler = importlib.import_module(sys.argv[1]).handler
print(json.dumps(handler(json.load(sys.stdin), None)))
"""
SAM = {
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "defaultkey",
    "AWS_SECRET_ACCESS_KEY": "defaultsecret",
}
"""The variables that SAM sets for each container."""


def write_settings(data: Path, output: Path) -> subprocess.CompletedProcess[str]:
    return run_kho("env", "--data", str(data), "--output", str(output))


def invoke(function: str, settings: dict[str, str]) -> Any:
    """Run a function on its sample event in a process of its own, with its own variables of these alone."""
    own = {name: value for name, value in settings.items() if name in (load().functions[function].variables or ())}
    path = os.pathsep.join([str(FILE.parent), str(FILE.parent / "functions")])
    done = subprocess.run(
        [sys.executable, "-c", INVOKE, function.replace("-", ".")],
        input=event(function),
        capture_output=True,
        check=True,
        env={"PYTHONPATH": path, "AWS_LAMBDA_FUNCTION_NAME": function} | own | SAM,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_function_with_the_written_settings_uses_the_servers_store(tmp_path: Path) -> None:
    """A container gets only variables that its function declares, and reaches the server's data with them."""
    with KhoServer(tmp_path / "data", "--store", "loopback") as server:
        file = tmp_path / "env.json"
        written = write_settings(server.data, file)
        assert written.returncode == 0, written.stderr
        assert file.stat().st_mode & 0o077 == 0
        settings = json.loads(file.read_text())["Parameters"]
        assert settings.keys() <= load().environment.keys()
        document = {"document_id": "guide", "parent_id": "root", "content": {"body": "Ferns like shade."}}
        created = {"action": "create_document", "principal": {"tenant_id": TENANT}, "payload": document}
        assert server.post("/actions", json.dumps(created).encode()).status == 200
        answer = invoke("agent_data-get_document", settings)
        assert answer["statusCode"] == 200, answer
        assert json.loads(answer["body"])["content"]["body"] == "Ferns like shade."


def test_env_without_a_server_is_reported(tmp_path: Path) -> None:
    refused = write_settings(tmp_path / "none", tmp_path / "env.json")
    assert refused.returncode == 1
    assert "Start it" in refused.stderr
    assert not (tmp_path / "env.json").exists()
