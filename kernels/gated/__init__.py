"""Gated activation of a feed-forward block."""
