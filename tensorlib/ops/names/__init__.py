"""Further names of PyTorch's: queries of tensors, older names, in-place methods as functions."""
