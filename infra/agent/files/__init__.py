"""Reading the caller's own files, under allowed roots alone."""
