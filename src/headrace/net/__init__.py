"""Sockets, clock and thread: the only client layer that waits. `net.driver` runs the machines."""
