"""Scaled residual addition and the sigmoid gate of a shared expert."""
