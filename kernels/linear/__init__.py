"""Matrix product with weights as stored in a GGUF file."""
