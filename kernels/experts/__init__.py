"""Mixture of experts: grouped products of the experts that have tokens."""
