"""OpenMP, which is not here: tensorlib has threads of its own (`tensorlib.set_num_threads`)."""

from .absent import is_available

__all__ = ["is_available"]
