"""The same code on tensorlib and on PyTorch, in turn: `python -m benchmarks --help`."""
