"""Output norm and logits of chosen rows."""
