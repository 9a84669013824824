"""Simulated ESP32 devices, with every quirk of the real ones."""
