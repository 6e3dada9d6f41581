"""Reusable pieces of the window: theme, icons, bars, toasts, cards. They know no workspace."""
