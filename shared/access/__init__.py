"""Authentication by API keys and an identity provider's tokens."""
