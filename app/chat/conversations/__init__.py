"""The list of conversations: where each one's state lives, and what it would cost to return to it."""
