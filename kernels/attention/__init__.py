"""Causal grouped-query attention over paged K and V."""
