"""Documents: the list, imports with progress, the intake report."""
