"""Doors: each turns one envelope into method calls and back, and holds no domain logic."""
