"""Discovery: what serves, what it offers, and the console."""
