"""Where the time of every answer went, and what was reused for it."""
