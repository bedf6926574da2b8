"""What scripts ask of CUDA, answered as PyTorch does on a machine without: there is no GPU.

>>> tensorlib.device("cuda" if tensorlib.cuda.is_available() else "cpu")
device(type='cpu')
"""

from typing import Any

from tensorlib._core.base.device import NoSuchDevice, device as device_type
from tensorlib._core.base.storage import OutOfMemoryError as OutOfMemoryError
from tensorlib._core.base.importing import on_first_use, parts_of

from ..backends.absent import (
    device_count as device_count, is_available as is_available, manual_seed as manual_seed,
    manual_seed_all as manual_seed_all, needs_device,
)

__getattr__, __dir__ = on_first_use(__name__, {"amp": "amp", "nvtx": "nvtx"})
parts_of(__name__, "random")


# ---- what there is -------------------------------------------------------------------------------

_initialized = False


def is_initialized() -> bool:
    """False: there is nothing to initialize."""
    return _initialized


def _is_in_bad_fork() -> bool:
    """False: nothing of a GPU was begun before a fork."""
    return False


def is_current_stream_capturing() -> bool:
    """False: there is no stream."""
    return False


default_generators = ()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: there is no GPU. On the CPU, tensors of bfloat16 compute in float32."""
    return False


def get_arch_list() -> list[str]:
    """No architecture of a GPU."""
    return []


# ---- what there is nothing to do for -------------------------------------------------------------

def seed() -> None:
    """Does nothing: `tensorlib.seed` seeds the generator of the CPU."""


def seed_all() -> None:
    """Does nothing, as `seed`."""


def empty_cache() -> None:
    """Does nothing: `tensorlib.memory.empty_cache` is for the memory of the CPU."""


def reset_peak_memory_stats(device: object = None) -> None:
    """Does nothing: `tensorlib.memory.reset_peak` is for the memory of the CPU."""


def memory_allocated(device: object = None) -> int:
    """0 bytes of a GPU: `tensorlib.memory.stats` is for the memory of the CPU."""
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Does nothing: nothing waits for a GPU."""


def get_sync_debug_mode() -> int:
    """0: the mode in which nothing warns of waiting for a GPU."""
    return 0


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def memory_stats(device: object = None) -> dict[str, Any]:
    """No figures: `tensorlib.memory.stats` has those of the CPU."""
    return {}


def get_rng_state_all() -> list[Any]:
    """The states of no generators."""
    return []


def set_rng_state_all(new_states: list[Any]) -> None:
    """Does nothing for no states. Raises: RuntimeError where there are some."""
    if new_states:
        raise NoSuchDevice(_missing("set_rng_state_all"))


class device:
    """A context in which a GPU is chosen: for None, or a number below 0, none is.

    Raises: RuntimeError when a GPU is.
    """

    def __init__(self, device: Any) -> None:
        index = device_type(device).index if isinstance(device, (str, device_type)) else device
        self.idx: int = -1 if index is None and not isinstance(device, (str, device_type)) else (
            index or 0)

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise NoSuchDevice(_missing("device"))

    def __exit__(self, *error: object) -> None:
        pass


class stream:
    """A context in which a stream is chosen: for None, none is. Raises: RuntimeError for one."""

    def __init__(self, stream: Any) -> None:
        if stream is not None:
            raise NoSuchDevice(_missing("stream"))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


StreamContext = stream


# ---- what needs a GPU ----------------------------------------------------------------------------

def _missing(name: str) -> str:
    return f"cuda.{name}: tensorlib is not compiled with CUDA enabled: tensors are on 'cpu'"


def _needs_gpu(name: str) -> Any:
    return needs_device(name, _missing(name), __name__)


CUDAGraph = _needs_gpu("CUDAGraph")
can_device_access_peer = _needs_gpu("can_device_access_peer")
current_device = _needs_gpu("current_device")
current_stream = _needs_gpu("current_stream")
default_stream = _needs_gpu("default_stream")
Event = _needs_gpu("Event")
get_device_capability = _needs_gpu("get_device_capability")
get_device_name = _needs_gpu("get_device_name")
get_device_properties = _needs_gpu("get_device_properties")
graph = _needs_gpu("graph")
get_rng_state = _needs_gpu("get_rng_state")
init = _needs_gpu("init")
initial_seed = _needs_gpu("initial_seed")
ipc_collect = _needs_gpu("ipc_collect")
mem_get_info = _needs_gpu("mem_get_info")
set_device = _needs_gpu("set_device")
set_rng_state = _needs_gpu("set_rng_state")
Stream = _needs_gpu("Stream")
synchronize = _needs_gpu("synchronize")
utilization = _needs_gpu("utilization")

BFloat16Tensor = _needs_gpu("BFloat16Tensor")
BoolTensor = _needs_gpu("BoolTensor")
ByteTensor = _needs_gpu("ByteTensor")
CharTensor = _needs_gpu("CharTensor")
DoubleTensor = _needs_gpu("DoubleTensor")
FloatTensor = _needs_gpu("FloatTensor")
HalfTensor = _needs_gpu("HalfTensor")
IntTensor = _needs_gpu("IntTensor")
LongTensor = _needs_gpu("LongTensor")
ShortTensor = _needs_gpu("ShortTensor")

__all__ = ["amp", "nvtx", *sorted(  # noqa: PLE0604
    name for name in globals() if name[0] != "_" and name not in (
        "Any", "NoSuchDevice", "device_type", "needs_device", "on_first_use", "parts_of"))]
