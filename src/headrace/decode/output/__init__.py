"""What is shown: items, trees of nodes, totals, as text or JSON."""
