"""MKL, which is not used: products run on the BLAS that NumPy was built with."""

from .absent import is_available

__all__ = ["is_available"]
