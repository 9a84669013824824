"""memory-server: the conversations of a chatbot, with their messages and summaries."""

from typing import Final

from shared.memory.models import ConversationId
from shared.rpc.cursor import Cursor, Limit
from shared.rpc.mcp_catalog import McpPrompt, McpPromptArgument, McpResource
from shared.rpc.method import Params

URI: Final = "memory://conversation/"

# The server's own capabilities list no tools. The MCP endpoints offer its methods as tools.
TOOLS: Final[list[object]] = []

RESOURCES: Final = [
    {
        "uri": f"{URI}{{conversation_id}}",
        "name": "Conversation {conversation_id}",
        "description": "Conversation history for {conversation_id}",
        "mimeType": "application/json",
    }
]

MCP_RESOURCES: Final = [
    McpResource(
        uri=f"{URI}{{conversation_id}}",
        name="conversation",
        title="Conversation",
        description="A conversation's messages, oldest first, and its summary, as JSON.",
        read="memory-server/resources/read",
        listing="memory-server/resources/list",
    )
]
MCP_PROMPTS: Final = [
    McpPrompt(
        name="summarize_conversation",
        title="Summarise a conversation",
        description="Write the summary that replaces a conversation's older messages.",
        text=(
            "Summarise the conversation below so that it can continue without its older messages. Say who wants what, "
            "what was found, decided and promised, and what is still open. If it has a summary, build on that. Write "
            "at most 200 words in the language with the code '{language}', and write only the summary. Then store it "
            "with memory_set_summary as the summary of the conversation '{conversation_id}'."
        ),
        arguments=[
            McpPromptArgument("conversation_id", "The conversation to summarise.", required=True),
            McpPromptArgument("language", "The code of the language to write in: vi or en.", default="vi"),
        ],
        resource=f"{URI}{{conversation_id}}",
    )
]


class ConversationParams(Params):
    """Parameters that name a conversation."""

    conversation_id: ConversationId


class MessagePageParams(ConversationParams):
    """A conversation and a page of its messages. Without `limit`, as many as fit in a response."""

    limit: Limit | None = None
    cursor: Cursor | None = None
