"""An agent of Pydantic AI."""

import asyncio
import os

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main() -> None:
    """Do the plan."""
    provider = OpenAIProvider(base_url=f"{os.environ['MODEL_URL']}/v1", api_key="none")
    agent = Agent(
        OpenAIChatModel("a-model", provider=provider),
        toolsets=[MCPToolset(os.environ["KHO_URL"])],
        retries=len("planned"),
    )
    async with agent:
        await agent.run("Do the plan.")


asyncio.run(main())
