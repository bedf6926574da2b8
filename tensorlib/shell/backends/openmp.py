"""OpenMP, which is not used: tensorlib has its own threads (`tensorlib.set_num_threads`)."""

from .absent import is_available

__all__ = ["is_available"]
