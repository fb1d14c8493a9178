"""Captured traffic, from the file to the bytes of each connection's two directions."""
