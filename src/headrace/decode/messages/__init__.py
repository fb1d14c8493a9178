"""One frame to a tree of nodes: header, fields, record batches, what codes mean."""
