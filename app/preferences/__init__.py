"""Preferences, applied at once; the list of shortcuts; the about box."""
