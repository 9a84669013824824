"""An agent of LlamaIndex."""

import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def main() -> None:
    """Do the plan."""
    llm = OpenAILike(
        model="a-model",
        api_key="none",
        api_base=f"{os.environ['MODEL_URL']}/v1",
        is_chat_model=True,
        is_function_calling_model=True,
    )
    tools = await McpToolSpec(BasicMCPClient(os.environ["KHO_URL"])).to_tool_list_async()
    await FunctionAgent(tools=tools, llm=llm, streaming=False).run("Do the plan.", max_iterations=40)


asyncio.run(main())
