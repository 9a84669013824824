"""The console in a real browser, against a running server with data and a simulated fleet."""
