"""The MQTT transport to devices."""
