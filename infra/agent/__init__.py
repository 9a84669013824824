"""The `research-agent` command: the knowledge base at a prompt, in scripts, and in an editor by MCP over STDIO."""
