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

__all__ = ["get_pretty_env_info", "main", "show_config"]


def show_config(mode="stdout"):
    """Prints the versions, instruction sets, BLAS, threads and memory in use; None.

    With `mode="dicts"` returns them as a dict instead. Raises: ValueError for another mode.
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"show_config: mode must be 'stdout' or 'dicts', got {mode!r}")
    if mode == "dicts":
        return _config()
    print(get_pretty_env_info())
    return None


def get_pretty_env_info():
    """What `show_config` prints, as a text.

    >>> get_pretty_env_info().splitlines()[0]
    'versions:'
    """
    return "\n".join(
        line for section, entries in _config().items() for line in (
            f"{section}:", *(f"  {name + ':':<12}{_text(x)}" for name, x in entries.items())))


def main():
    """Prints what `python -m tensorlib.utils.collect_env` prints: see `show_config`."""
    show_config()


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


if __name__ == "__main__":
    main()
