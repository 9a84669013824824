"""Passage search by meaning and by words."""
