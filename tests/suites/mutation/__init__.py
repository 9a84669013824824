"""Small changes to modules that keep promises, each of which a unit or integration test must notice."""
