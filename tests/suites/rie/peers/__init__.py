"""One memory method as other projects would write it, for comparison: the same two writes to the same table."""
