"""One memory method as others would write it, to measure ours beside: the same two writes to the same table."""
