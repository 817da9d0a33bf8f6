"""Faster ways to compute the same network."""
