"""Who is calling: API keys, and tokens of an identity provider."""
