"""The decoder's formulas in plain torch."""
