"""Simulated ESP32 devices with the quirks of real ones."""
