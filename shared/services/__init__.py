"""Services that join two subjects."""
