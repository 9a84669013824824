"""Migrations on the real store."""
