"""Experiences: solved problems with their solutions, shared among all callers."""
