"""A question to an editor's user has a limit of time."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
from fastmcp import Client, Context, FastMCP

from infra.clients.agent.elicitation import can_ask, elicit_confirmation

NEVER_ANSWERED = 0.01


def outcome(handler: Any) -> Any:
    """Return what a tool learns of a client with this handler of questions."""
    server: FastMCP[Any] = FastMCP("test")

    async def ask(ctx: Context) -> dict[str, Any]:
        if not can_ask(ctx):
            return {"asked": False}
        return {"asked": True, "confirmed": await elicit_confirmation(ctx, "Delete it?", NEVER_ANSWERED)}

    server.tool(ask)

    async def use() -> Any:
        async with Client(server, mode="legacy", elicitation_handler=handler) as client:
            return (await client.call_tool("ask")).structured_content

    return asyncio.run(use())


async def _never(*_: Any) -> Any:
    await anyio.sleep_forever()


def test_unanswered_question_is_no_confirmation() -> None:
    assert outcome(_never) == {"asked": True, "confirmed": False}


def test_client_that_cannot_ask_is_not_asked() -> None:
    assert outcome(None) == {"asked": False}
