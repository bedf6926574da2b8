"""Reductions: how a tensor is arranged for one, how the work is cut, what comes out."""
