"""Joint transactions: one process begins and ends them, several write into them (decision 0037)."""
