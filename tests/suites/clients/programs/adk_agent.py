"""An agent of Google's ADK."""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from google.genai import types


async def main() -> None:
    """Do the plan."""
    tools = McpToolset(connection_params=StreamableHTTPConnectionParams(url=os.environ["KHO_URL"]))
    runner = InMemoryRunner(LlmAgent(name="planned", model="gemini-2.5-flash", tools=[tools]), app_name="planned")
    session = await runner.session_service.create_session(app_name="planned", user_id="one")
    message = types.Content(role="user", parts=[types.Part(text="Do the plan.")])
    async for _ in runner.run_async(user_id="one", session_id=session.id, new_message=message):
        pass
    await runner.close()


asyncio.run(main())
