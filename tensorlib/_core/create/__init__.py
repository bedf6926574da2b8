"""New values: tensors constant, evenly spaced or random, and writes over the old in place."""
