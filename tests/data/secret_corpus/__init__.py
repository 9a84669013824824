"""Texts with a secret in them, by what it is, and texts with none: what a finder of secrets is held against."""
