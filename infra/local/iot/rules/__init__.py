"""IoT rules on one machine: their SQL, and the dispatcher that invokes their functions."""
