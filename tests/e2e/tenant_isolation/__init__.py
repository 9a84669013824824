"""Tenant isolation: every method is called for the data of another tenant."""
