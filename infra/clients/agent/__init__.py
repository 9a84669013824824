"""The `research-agent` command: the knowledge base for the terminal, for scripts, and for editors by MCP over STDIO."""
