"""A chatbot's memory: conversations with their messages and summaries."""
