"""Suites that a make target each runs."""
