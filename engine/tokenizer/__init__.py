"""Tokenizers: byte-level BPE from the GGUF file, streaming detokenisation."""

from engine.tokenizer.stream import TokenStream
from engine.tokenizer.tokenizer import Tokenizer

__all__ = ["TokenStream", "Tokenizer"]
