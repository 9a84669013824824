"""Framework of the functions: handlers, HTTP events, authentication, error formats and MCP."""
