"""Reductions and scans along dims: sums, extremes, norms, statistics."""
