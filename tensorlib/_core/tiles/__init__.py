"""Element-wise work: contiguous loops, and the programs that run them tile by tile."""
