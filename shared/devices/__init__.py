"""Devices: whose they are, what they can do, and how they are spoken to."""
