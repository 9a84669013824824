"""What surrounds the functions."""
