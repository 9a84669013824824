"""The command line, one machine's services, the research agent's client, and deployment."""
