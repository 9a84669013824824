"""The search index on one machine: Qdrant's engine in a process of its own."""
