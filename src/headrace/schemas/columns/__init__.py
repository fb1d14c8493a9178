"""Values of one schema, a column at a time: bytes become Arrow columns and the other way round (decision 0038)."""
