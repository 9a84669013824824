"""Tests of the search engine's parts."""
