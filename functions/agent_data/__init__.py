"""agent-data: a tree of documents that agents share."""

from typing import Final

from shared.rpc.mcp_catalog import McpResource

MCP_RESOURCES: Final = [
    McpResource(
        uri="agent-data://document/{document_id}",
        name="document",
        title="Document",
        description="A shared document by its id: its text, metadata, parent and revision, as JSON.",
        read="agent-data/get_document",
    )
]
