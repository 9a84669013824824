"""research-agent's knowledge bases: collections, documents, projects, ingestion and queries."""
