"""The model manager: which model answers, and how to get another."""
