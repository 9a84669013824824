"""A chatbot's memory: conversations, their messages and summaries."""
