"""`make deploy-local`: build, deploy to an emulator of AWS by `sam deploy`, and call what came up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import urllib3

from infra.local.template import load
from tests.suites.deployment.emulator import STACK, add_routes, client, running_emulator, without_what_it_lacks
from tests.suites.deployment.sam_build import build_clone
from tests.suites.deployment.tools import command_environment, tool


def main() -> int:
    """0 if all came up and answers."""
    with TemporaryDirectory(prefix="kho-deployment-") as folder, build_clone(for_this_machine=True) as build:
        template, missing = without_what_it_lacks(build / "template.yaml")
        with running_emulator(Path(folder)) as url:
            _deploy(template, url)
            problems = _missing(url)
            problems += _calls(url, add_routes(url))
    print(f"Not emulated: {', '.join(missing) or 'nothing'}")
    print("\n".join(problems) or "All came up, and answers.")
    return len(problems)


def _deploy(template: Path, url: str) -> None:
    command = [str(tool("sam") / "sam"), "deploy", "--template-file", str(template), "--stack-name", STACK]
    command += ["--resolve-s3", "--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND", "--no-progressbar"]
    command += ["--parameter-overrides", "IotEndpoint=iot.localhost"]  # without it, there are no devices
    ran = subprocess.run(
        command,
        cwd=template.parent,
        env=command_environment(AWS_ENDPOINT_URL=url),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]


def _missing(url: str) -> list[str]:
    """Return the resources of the template that are missing."""
    template = load()
    pages = client("lambda", url).get_paginator("list_functions").paginate()
    there = {
        "function": {each["FunctionName"] for page in pages for each in page["Functions"]},
        "table": {name.rpartition("-")[0] for name in client("dynamodb", url).list_tables()["TableNames"]},
        "stream's worker": {
            each["FunctionArn"].rpartition(":")[2]
            for each in client("lambda", url).list_event_source_mappings()["EventSourceMappings"]
        },
        "rule": {rule["ruleName"] for rule in client("iot", url).list_topic_rules()["rules"]},
    }
    wanted = {
        "function": {f"{STACK}-{name}" for name in template.functions},
        "table": {table.name for table in template.tables},
        "stream's worker": {f"{STACK}-{stream.function}" for stream in template.streams},
    }
    counted = ", ".join(f"{len(names)} {kind}s" for kind, names in there.items())
    print(f"There are {counted}.")
    problems = [f"no {kind} {name}" for kind, names in wanted.items() for name in sorted(names - there[kind])]
    return problems + ([] if len(there["rule"]) == len(template.rules) else ["not every rule is there"])


def _calls(url: str, api: str) -> list[str]:
    """Call through the gateway with a key that `kho keys` made in the stack. Return the wrong answers."""
    kho = str(Path(sys.executable).with_name("kho"))
    process = subprocess.run(
        [kho, "keys", "create", "--stack", STACK, "--tenant", "acme", "--role", "admin", "--json"],
        env=command_environment(AWS_ENDPOINT_URL=url) | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    key = {"authorization": f"Bearer {json.loads(process.stdout)['key']}"}
    named = {"conversation_id": "chat"}
    memory = "memory-server/memory"
    rpc = {"jsonrpc": "2.0", "method": f"{memory}/get_context", "params": named, "id": 1}
    requests: list[tuple[str, dict[str, Any] | None, dict[str, str], int, str]] = [
        # More of the console is out of reach: the emulator drops the slash of /console/, and has no /opt with layers.
        ("/console", None, {}, 302, ""),
        (f"/{memory}/get_or_create", named, {}, 401, "Unauthorized"),
        (f"/{memory}/get_or_create", named, {"authorization": "Bearer wrong"}, 401, "NOT_SIGNED_IN"),
        (f"/{memory}/get_or_create", named, key, 200, '"chat"'),
        (f"/{memory}/add_message", named | {"role": "user", "content": "Xin chào"}, key, 200, "success"),
        (f"/{memory}/get_context", named, key, 200, "Xin chào"),
        ("/jsonrpc", rpc, key, 200, "Xin chào"),
        (
            "/agent-data/create_document",
            {"document_id": "a", "parent_id": "root", "content": {"body": "b"}},
            key,
            200,
            "",
        ),
        ("/agent-data/get_document", {"document_id": "a"}, key, 200, '"b"'),
    ]
    problems = []
    for path, params, headers, status, said in requests:
        verb, body, kind = "GET", None, {}
        if params is not None:
            verb, body, kind = "POST", json.dumps(params).encode(), {"content-type": "application/json"}
        host = {"host": f"{api}.execute-api.localhost"}
        answer = urllib3.request(verb, url + path, body=body, headers=host | kind | headers, redirect=False, timeout=90)
        text = answer.data.decode()
        print(f"{verb} {path}: {answer.status} {text[:100]}")
        if answer.status != status or said not in text:
            problems.append(f"{path} answered {answer.status}: {text[:500]}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
