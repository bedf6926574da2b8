"""The Tensor itself: its memory, shape and attributes, and its elements as Python numbers."""
