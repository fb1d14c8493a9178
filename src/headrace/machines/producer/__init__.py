"""Decisions of a producer: batches, requests, numbers, retries, transactions."""
