"""The admin client: its engine, and its faces."""
