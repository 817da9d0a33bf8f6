"""Graphs: reading, writing, generating and batching them."""
