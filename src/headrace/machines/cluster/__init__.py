"""Decisions about the cluster: its metadata, coordinators, and a connection's handshake."""
