"""An MQTT broker that stands in for AWS IoT Core on one machine."""
