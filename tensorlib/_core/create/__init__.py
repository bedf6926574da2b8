"""New tensors: constant, evenly spaced or random; and values written in place."""
