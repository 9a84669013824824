"""Clients of Kho: the research agent, the command line, and the console."""
