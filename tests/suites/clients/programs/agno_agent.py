"""An agent of Agno."""

import asyncio
import os

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.mcp import MCPTools


async def main() -> None:
    """Do the plan."""
    model = OpenAIChat("a-model", api_key="none", base_url=f"{os.environ['MODEL_URL']}/v1")
    async with MCPTools(url=os.environ["KHO_URL"], transport="streamable-http", timeout_seconds=60) as tools:
        await Agent(model=model, tools=[tools], telemetry=False).arun("Do the plan.")


asyncio.run(main())
