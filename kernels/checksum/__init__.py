"""XXH3-128 of the layers of a page."""
