"""The name that dtypes and sizes are printed with: `tensorlib`, or PyTorch's under `as_torch`."""

name = "tensorlib"
