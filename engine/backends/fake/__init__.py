"""A stand-in for a GPU: torch on CPU tensors, with every transfer counted."""
