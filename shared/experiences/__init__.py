"""Experiences: problems that somebody had, and what solved them, shared by everyone."""
