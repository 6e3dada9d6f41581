"""Where the selected conversation's state lives, and what can be done about it."""
