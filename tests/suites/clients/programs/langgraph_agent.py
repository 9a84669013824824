"""An agent of LangChain and LangGraph with the MCP adapters, on the provider that the first argument names."""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

URL = os.environ["MODEL_URL"]
MODELS = {
    "chat": lambda: ChatOpenAI(model="a-model", api_key="none", base_url=f"{URL}/v1"),
    "anthropic": lambda: ChatAnthropic(model="a-model", api_key="none", base_url=URL),
    "gemini": lambda: ChatGoogleGenerativeAI(model="a-model", api_key="none", base_url=URL),
}


async def main() -> None:
    """Do the plan."""
    client = MultiServerMCPClient({"kho": {"url": os.environ["KHO_URL"], "transport": "streamable_http"}})
    agent = create_agent(MODELS[sys.argv[1]](), await client.get_tools())
    await agent.ainvoke({"messages": [("user", "Do the plan.")]}, {"recursion_limit": 100})


asyncio.run(main())
