"""Clients that share a transaction: its owner, and producers that join it (decision 0037)."""
