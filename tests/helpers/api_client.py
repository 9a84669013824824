"""Clients of a server that requires credentials, and the command that creates their keys."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from infra.local.data_folder import read_server_info
from shared.access.api_keys import ApiKeys
from shared.aws.dynamodb import Table
from tests.helpers.dynamodb import store_of
from tests.helpers.program import KHO, run

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from shared.rpc.caller import Role
    from tests.helpers.kho_server import KhoServer


@dataclass(frozen=True, slots=True)
class ApiClient:
    """One caller, whose credentials are a key, a token, or none."""

    server: KhoServer
    credential: str | None

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that carry the caller's credentials."""
        return {} if self.credential is None else {"authorization": f"Bearer {self.credential}"}

    def direct(self, method: str, /, **params: Any) -> tuple[int, Any]:
        """Call the method's own route and return status and body."""
        response = self.server.post(f"/{method}", json.dumps(params).encode(), **self.headers)
        return response.status, json.loads(response.data)

    def jsonrpc(self, method: str, /, **params: Any) -> tuple[int, Any]:
        """Call through the JSON-RPC endpoint and return status and body."""
        body = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
        response = self.server.post("/jsonrpc", json.dumps(body).encode(), **self.headers)
        return response.status, json.loads(response.data)

    def action(self, method: str, /, **params: Any) -> tuple[int, Any]:
        """Call an agent-data method through the actions endpoint and return status and body."""
        return self.act({"action": method.rpartition("/")[2], "payload": params})

    def act(self, envelope: dict[str, Any]) -> tuple[int, Any]:
        """Post to the actions endpoint and return status and body."""
        response = self.server.post("/actions", json.dumps(envelope).encode(), **self.headers)
        return response.status, json.loads(response.data)

    def result(self, method: str, /, **params: Any) -> Any:
        """Return the result of a call that succeeds."""
        status, body = self.direct(method, **params)
        assert status == 200, body
        return body


def run_kho(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the `kho` command and return when it has ended."""
    return run(KHO, *arguments, env=os.environ | {"COLUMNS": "200"} | (environment or {}))


def make_key(data: Path, tenant: str, role: str, *options: str) -> dict[str, Any]:
    """Create a key: by the command if there are options or no server runs, else by the function behind the command."""
    running = None if options or not data.exists() else read_server_info(data)
    if running:
        with store_of(data):
            made, text = ApiKeys(Table("kho-AccessTable")).create(tenant, cast("Role", role))
        return {"id": made.id, "key": text}
    done = run_kho("keys", "create", "--data", str(data), "--tenant", tenant, "--role", role, "--json", *options)
    assert done.returncode == 0, done.stderr
    key: dict[str, Any] = json.loads(done.stdout)
    return key
