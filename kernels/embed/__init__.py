"""Token rows of the embedding weight."""
