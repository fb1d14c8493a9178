"""Record batches as columns: plain buffers, and Arrow."""
