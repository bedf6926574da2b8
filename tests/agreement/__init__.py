"""Calls of every operation with arguments of all kinds, on tensorlib and on PyTorch."""
