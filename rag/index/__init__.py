"""The library's index: SQLite with full-text tables, and one file of vectors per document."""
