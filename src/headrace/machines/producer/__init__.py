"""Decisions of a producer: batches, requests, sequences, retries, transactions."""
