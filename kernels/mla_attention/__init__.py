"""Latent attention (MLA), decompressed or absorbed by the role of a row."""
