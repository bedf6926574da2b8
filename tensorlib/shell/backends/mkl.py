"""MKL, which is not here: products run in the BLAS that NumPy was built with."""

from .absent import is_available

__all__ = ["is_available"]
