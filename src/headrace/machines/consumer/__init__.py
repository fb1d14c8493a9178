"""Decisions of a consumer: what it reads, from whom, from where."""
