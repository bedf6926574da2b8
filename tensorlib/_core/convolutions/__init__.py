"""Convolutions and their gradients: a module for each way to compute them."""
