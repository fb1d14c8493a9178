"""Damaged bytes through everything that reads: only the two errors of damage, in bounded time and memory."""
