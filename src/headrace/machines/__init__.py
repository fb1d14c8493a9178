"""Decisions of the client, free of sockets, clocks, threads and randomness. `machines.machine` says what one is."""
