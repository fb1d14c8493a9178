"""Requests of administration, and what their replies mean."""
