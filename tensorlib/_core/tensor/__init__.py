"""The Tensor itself: its memory, its shape, its numbers and what is asked of it."""
