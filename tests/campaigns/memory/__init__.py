"""What clients take of memory when brokers or applications stall: `python -m tests.campaigns.memory --records
10000000`."""
