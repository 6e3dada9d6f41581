"""Text vectors by our own BERT encoder, from a sentence-transformers folder or a GGUF file."""

from engine.embedding.embedder import NativeEmbedder, can_embed

__all__ = ["NativeEmbedder", "can_embed"]
