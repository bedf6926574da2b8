"""New tensors: constant, evenly spaced, random."""
