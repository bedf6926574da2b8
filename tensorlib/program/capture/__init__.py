"""Capture: a function runs on real tensors, and its operations become calls of a program."""
