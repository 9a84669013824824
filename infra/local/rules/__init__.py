"""IoT rules on one machine: their SQL, and the functions that they bring messages to."""
