"""Tools of the suite that ask the client for something before they answer (input-required results)."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams

    Context = ServerRequestContext[Any, Any]

_KEY = secrets.token_bytes(16)
_NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def elicit(message: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def sample(said: str, tokens: int = 100) -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": said}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}
NAME = elicit("What is your name?", _NAME)
CONFIRM = elicit("Please confirm", {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
COLOUR = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
INPUTS: dict[str, dict[str, Any]] = {
    "test_input_required_result_elicitation": {"user_name": NAME},
    "test_streaming_elicitation": {"user_name": NAME},
    "test_input_required_result_sampling": {"capital_question": sample("What is the capital of France?")},
    "test_input_required_result_list_roots": {"client_roots": ROOTS},
    "test_input_required_result_request_state": {"confirm": CONFIRM},
    "test_input_required_result_tampered_state": {"confirm": CONFIRM},
    "test_input_required_result_multiple_inputs": {
        "user_name": NAME,
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ROOTS,
    },
    "test_input_required_result_capabilities": {"capital_question": sample("What is the capital of France?")},
}
_STATEFUL = {name for name in INPUTS if "state" in name or "multiple" in name}


def _signed(state: str) -> str:
    return f"{state}.{hmac.new(_KEY, state.encode(), hashlib.sha256).hexdigest()}"


def _state(said: str | None) -> str:
    state, _, _ = (said or "").rpartition(".")
    if said is None or not hmac.compare_digest(said, _signed(state)):
        raise MCPError(INVALID_PARAMS, "The request state is not what this server gave.")
    return state


def wanting(requests: dict[str, Any], state: str | None = None) -> dict[str, Any]:
    wanting: dict[str, Any] = {"resultType": "input_required", "inputRequests": requests}
    return wanting if state is None else wanting | {"requestState": _signed(state)}


async def ask(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
    requests = INPUTS[params.name]
    inputs = responses(context)
    if params.name in _STATEFUL and inputs:
        _state(params.request_state)
    if any(not isinstance(inputs.get(key), dict) for key in requests):
        return wanting(requests, "asked" if params.name in _STATEFUL else None)
    return text(f"state-ok: {json.dumps(inputs)}")


async def ask_in_rounds(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
    inputs = responses(context)
    state = _state(params.request_state) if inputs else ""
    if state == "1" and "step1" in inputs:
        return wanting({"step2": elicit("Step 2: What is your favorite color?", COLOUR)}, "2")
    if state == "2" and "step2" in inputs:
        return text("Both steps are done.")
    return wanting({"step1": elicit("Step 1: What is your name?", _NAME)}, "1")


def responses(context: Context) -> dict[str, Any]:
    inputs: dict[str, Any] = (context.params or {}).get("inputResponses") or {}
    return inputs
