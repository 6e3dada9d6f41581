"""Backends: one way each to run a model step."""
