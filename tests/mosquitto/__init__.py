"""Debian's mosquitto beside the embedded broker: the same tests, and the same words between backend and device."""
