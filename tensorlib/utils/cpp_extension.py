"""What builds code in C++ or CUDA against PyTorch, which can't run here: each function raises.

Libraries that have such code and do without go on. `tensorlib.library` has operations of one's own.
"""

from typing import Any, NoReturn

from tensorlib._core.base.absent import absent

__all__ = ["BuildExtension", "CUDA_HOME", "CUDAExtension", "CppExtension", "load", "load_inline"]

CUDA_HOME = ROCM_HOME = None                   # where compilers for GPUs are
WHY = "code compiled for PyTorch can't be called here; library.custom_op defines operations"

BuildExtension = absent("BuildExtension", WHY, __name__)
CppExtension = absent("CppExtension", WHY, __name__)
CUDAExtension = absent("CUDAExtension", WHY, __name__)


def load(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError, as in PyTorch where code can't be built."""
    raise RuntimeError(f"cpp_extension: {name}: {WHY}")


load_inline = load
