"""IoT Core on one machine."""
