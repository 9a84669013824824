"""tool-server: tools for chatbots."""

from shared.tools import tools

MCP_TOOLS = list(tools().values())
TOOLS = [each.described() for each in MCP_TOOLS]
