"""The share consumer: its engine, and its faces."""
