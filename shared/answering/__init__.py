"""Answer generation from passages: retrieval, relevance filter, language model and time budget."""
