"""OAuth 2.1: Kho's own authorization server for MCP clients that cannot hold a key."""
