"""Processes that serve HTTP and run functions at the same time, as instances do on Lambda."""
