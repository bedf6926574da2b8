"""The library's name before those of dtypes, layouts and sizes: PyTorch's under `as_torch`."""

name = "tensorlib"
