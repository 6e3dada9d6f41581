"""Choice of experts."""
