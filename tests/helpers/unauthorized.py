"""Calls that require credentials, and the answer to callers without."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.helpers.api_client import ApiClient


ADD = "memory-server/memory/add_message"
LIST = "memory-server/resources/list"
MESSAGE = {"conversation_id": "chat", "role": "user", "content": "x"}


def assert_unauthorized(client: ApiClient) -> None:
    """Check that every endpoint answers 401 with the contract's body and the way to sign in."""
    for path, body in ((f"/{LIST}", {}), ("/jsonrpc", {"jsonrpc": "2.0", "method": LIST, "id": 1})):
        response = client.server.post(path, json.dumps(body).encode(), **client.headers)
        assert response.status == 401, (path, response.data)
        assert response.headers["www-authenticate"] == "Bearer"
        error = json.loads(response.data)["error"]
        assert (error["data"] if path == "/jsonrpc" else error)["code"] == "NOT_SIGNED_IN"
