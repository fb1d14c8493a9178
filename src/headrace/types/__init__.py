"""Plain values of the public API: no behaviour, no I/O."""
