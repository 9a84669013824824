"""Services that join subjects: documents and experiences with their indexes."""
