"""MQTT transport to devices."""
