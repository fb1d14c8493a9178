"""Bytes of a connection: frames, requests with their replies, and who is the client."""
