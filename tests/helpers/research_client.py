"""Calls of research-agent's functions as endpoints make them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from shared.rpc.errors import KhoError

if TYPE_CHECKING:
    from shared.rpc.caller import Caller


def call_research_agent(caller: Caller, method: str, **params: Any) -> Any:
    """Return the method's result, or raise its error."""
    handler = importlib.import_module(f"research_agent.{method}").handler
    call = {"method": method, "params": params, "caller": caller.record(), "correlation_id": "research-client"}
    answer = handler(call, None)
    if "error" in answer:
        raise KhoError.from_record(answer["error"])
    return answer["result"]
