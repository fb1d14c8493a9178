"""Bytes to messages and back: no state, no time, no sockets. `wire.schema` says what a message is."""
