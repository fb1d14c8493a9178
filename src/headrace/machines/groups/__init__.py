"""Decisions of a member of a group."""
