"""Conversations, the transcript, the composer, and what the reader can do with them."""
