"""Devices: ownership, tools, and the protocol that they speak."""
