"""Names that scripts ask for: queries of tensors, older names, in-place methods as functions."""
