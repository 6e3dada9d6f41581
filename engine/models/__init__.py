"""Model families as tables over one decoder."""
