"""Endpoints: each turns one envelope into method calls and back, without domain logic."""
