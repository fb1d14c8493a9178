"""What a producer takes of memory behind a broker that stalls: `python -m tests.memory --records 10000000`."""
