"""`kho doctor`: health checks of a deployment or of this machine, with advice."""
