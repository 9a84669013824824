"""MQTT 3.1.1 and 5 on the wire, for the broker and for simulated devices."""
