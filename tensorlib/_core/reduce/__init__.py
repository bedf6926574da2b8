"""Reductions: how a tensor is laid out for one, how the work is divided, and the results."""
