"""The name of the library before those of its dtypes and sizes: PyTorch's under `as_torch`."""

name = "tensorlib"
