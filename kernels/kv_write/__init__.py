"""K and V rows into pages."""
