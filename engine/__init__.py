"""The embedded engine: GGUF models, paged KV state, scheduler. Imports kernels only."""
