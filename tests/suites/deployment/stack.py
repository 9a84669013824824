"""The stack in the emulator: its deployment by `sam deploy`, the commands of `kho`, and calls through its gateway."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

import urllib3

from tests.suites.deployment.emulator import STACK
from tests.suites.deployment.tools import command_environment, tool
from tests.suites.rie.installation import ROOT

if TYPE_CHECKING:
    from pathlib import Path

TENANT: Final = "acme"
_SECONDS: Final = 90.0


class Stack:
    """The stack in the emulator at `url`."""

    def __init__(self, url: str, **parameters: str) -> None:
        self.url = url
        self._parameters = {"IotEndpoint": "iot.localhost"} | parameters  # without it, there are no devices
        self.api = ""
        """The id of its API, with the routes of `add_routes`."""

    def deploy(self, template: Path) -> None:
        """Create the stack, or update it."""
        command = [str(tool("sam") / "sam"), "deploy", "--template-file", str(template), "--stack-name", STACK]
        command += ["--resolve-s3", "--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND", "--no-progressbar"]
        command += ["--parameter-overrides", *(f"{name}={value}" for name, value in self._parameters.items())]
        began = time.monotonic()
        process = self._run(command, template.parent)
        print(f"sam deploy: {time.monotonic() - began:.0f} s", flush=True)
        assert process.returncode == 0, (process.stdout + process.stderr)[-3000:]

    def kho(self, *arguments: str, checkout: Path = ROOT) -> subprocess.CompletedProcess[str]:
        """Run a command of the `kho` of a checkout on the stack."""
        return self._run([str(checkout / ".venv" / "bin" / "kho"), *arguments, "--stack", STACK], checkout)

    def create_key(self, checkout: Path = ROOT) -> dict[str, str]:
        """Create an admin's key by the `kho` of a checkout. Return the headers of calls with it."""
        process = self.kho("keys", "create", "--tenant", TENANT, "--role", "admin", "--json", checkout=checkout)
        assert process.returncode == 0, process.stderr
        return {"authorization": f"Bearer {json.loads(process.stdout)['key']}"}

    def request(self, path: str, params: dict[str, Any] | None, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        """Post the parameters to a route of the gateway, or get it without parameters."""
        verb, body, kind = "GET", None, {}
        if params is not None:
            verb, body, kind = "POST", json.dumps(params).encode(), {"content-type": "application/json"}
        host = {"host": f"{self.api}.execute-api.localhost"}
        return urllib3.request(
            verb, self.url + path, body=body, headers=host | kind | headers, redirect=False, timeout=_SECONDS
        )

    def _run(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        settings = command_environment(AWS_ENDPOINT_URL=self.url) | {"PATH": os.environ["PATH"]}
        return subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
