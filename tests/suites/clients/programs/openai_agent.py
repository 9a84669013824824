"""An agent of openai-agents on the API that the first argument names; with responses, its schemas are strict."""

import asyncio
import os
import sys

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

MODELS = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


async def main(api: str) -> None:
    """Do the plan."""
    set_tracing_disabled(True)
    model = MODELS[api]("a-model", AsyncOpenAI(api_key="none", base_url=f"{os.environ['MODEL_URL']}/v1"))
    async with MCPServerStreamableHttp(params={"url": os.environ["KHO_URL"]}) as server:
        config = {"convert_schemas_to_strict": api == "responses"}
        agent = Agent("planned", model=model, mcp_servers=[server], mcp_config=config)
        await Runner.run(agent, "Do the plan.", max_turns=40)


asyncio.run(main(sys.argv[1]))
