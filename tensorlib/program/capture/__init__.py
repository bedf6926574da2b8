"""What operations on real tensors become while a function runs: calls of a program."""
