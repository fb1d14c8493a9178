"""The consumer: its engine, and its faces."""
