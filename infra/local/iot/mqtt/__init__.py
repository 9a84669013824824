"""A codec for MQTT 3.1.1 and 5, used by the broker and by simulated devices."""
