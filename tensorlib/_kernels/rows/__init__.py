"""Rows of elements: sums, extremes, running sums, softmax, normalisation."""
