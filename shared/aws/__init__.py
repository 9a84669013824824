"""Protocols of AWS: signed requests, DynamoDB, Secrets Manager."""
