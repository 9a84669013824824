"""Debian's mosquitto compared with the embedded broker: the same tests, the same dialogue of backend and device."""
