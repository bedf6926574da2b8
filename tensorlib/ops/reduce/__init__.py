"""Many elements to one, or to a running one, along dims: sums, extremes, norms, statistics."""
