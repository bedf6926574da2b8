"""The settings of what PyTorch computes with elsewhere: they can be set, and change nothing.

Results are the same whatever stands here, for any number of threads: there is one way to compute
each of them.

>>> tensorlib.backends.cudnn.benchmark = True
>>> tensorlib.backends.mps.is_available()
False
"""

from typing import TYPE_CHECKING

from tensorlib._core.base.importing import on_first_use

if TYPE_CHECKING:
    from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def flags_frozen() -> bool:
    """False: settings may be set one by one."""
    return False


__getattr__, __dir__ = on_first_use(__name__, {name: name for name in __all__})
