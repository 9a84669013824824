"""An MQTT broker that emulates AWS IoT Core on one machine."""
