"""Conversations, turns, models and imports without Qt; the window and the command line are thin over it."""
