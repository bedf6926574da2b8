"""New tensors: constants, ranges, windows, random numbers."""
