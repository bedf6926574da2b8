"""What this installation is made of and what it runs on: the first lines of a good bug report."""

import platform

import numpy as np

from tensorlib import _kernels
from tensorlib._core.base.pool import get_num_threads, usable_processors
from tensorlib._core.base.storage import stats
from tensorlib._core.products.blas import blas_info
from tensorlib._core.base.version import __version__
from tensorlib._kernels import available_levels
from tensorlib._kernels.cpu import compiler

__all__ = ["show_config"]


def show_config(mode="stdout"):
    """Prints the versions, instruction sets, BLAS, threads and memory in use; None.

    With `mode="dicts"` returns them as a dict instead. Raises: ValueError for another mode.
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode must be 'stdout' or 'dicts', got {mode!r}")
    config = _config()
    if mode == "dicts":
        return config
    for section, entries in config.items():
        print(f"{section}:")
        for name, value in entries.items():
            print(f"  {name + ':':<12}{_text(value)}")
    return None


def _config():
    """The sections, each a dict of what it says."""
    blas = blas_info()
    return {
        "versions": {
            "tensorlib": __version__,
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "compiler": compiler(),
        },
        "kernels": {
            "level": _kernels.level,
            "available": available_levels(),
            "machine": platform.machine(),
        },
        "threads": {"in use": get_num_threads(), "processors": usable_processors()},
        "BLAS": {key: blas[key] for key in ("name", "version", "threads", "path")},
        "memory": {key: stats()[key] for key in ("in_use", "peak", "kept", "limit")},
    }


def _text(value):
    """One value as it is printed."""
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
