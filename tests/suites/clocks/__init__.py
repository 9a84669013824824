"""Servers whose clock is wrong for a while; run by `make clocks`."""
