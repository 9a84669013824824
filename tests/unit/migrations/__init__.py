"""Migrations without a store."""
