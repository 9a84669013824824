"""Answering a question from passages: what is found, what bears on it, who words it, and what that may take."""
