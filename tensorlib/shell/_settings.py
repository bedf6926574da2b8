"""Settings that PyTorch has, for scripts that set them: each is kept, and changes no result.

There is one way to compute each result. It is the same in every run and for any number of threads,
in full precision, on the CPU.
"""


from tensorlib._core.base.warned import warn_of
from tensorlib._core.base.device import CPU, META, device, require_device
from tensorlib._core.base.region import default_is_meta, set_default_meta
from tensorlib._core.base.registry import Registry

_kept = Registry(deterministic=0, precision="highest", always_warn=False, interop=1)
PRECISIONS = ("highest", "high", "medium")
MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Changes nothing: every result is the same in every run. Raises: TypeError for no bool.

    >>> tensorlib.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"use_deterministic_algorithms: {name} must be a bool, got {value!r}")
    _kept["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was set: results are the same in any case."""
    return _kept["deterministic"] != 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was set with `warn_only`."""
    return _kept["deterministic"] == 1


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same as `use_deterministic_algorithms`, by "default", "warn" or "error", or 0 to 2.

    Raises: RuntimeError for another name or number, TypeError for neither.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError("set_deterministic_debug_mode: expects a str or an int, but got "
                        f"{type(debug_mode).__name__}")
    if debug_mode not in MODES and debug_mode not in (0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode: expected one of {', '.join(MODES)}, or "
                           f"0, 1, 2, got {debug_mode!r}")
    _kept["deterministic"] = (
        MODES.index(debug_mode) if isinstance(debug_mode, str) else int(debug_mode))


def get_deterministic_debug_mode() -> int:
    """The mode that `set_deterministic_debug_mode` stored, from 0 to 2."""
    return int(_kept["deterministic"])


def set_float32_matmul_precision(precision: str) -> None:
    """Changes nothing: products of float32 are computed in float32. Warns of an unknown name."""
    if precision in PRECISIONS:
        _kept["precision"] = precision
    else:
        warn_of(f"set_float32_matmul_precision: {precision!r} is not one of "
                f"{', '.join(PRECISIONS)}; the call has no effect", level=2)


def get_float32_matmul_precision() -> str:
    """The precision that `set_float32_matmul_precision` stored, at first "highest"."""
    return str(_kept["precision"])


def set_default_device(device: device | str | None) -> None:
    """Has this thread make tensors on `meta`, or on the CPU, where no device is asked for.

    None: on the CPU. Raises: RuntimeError for others, and for names that are none; TypeError.
    """
    require_device("set_default_device", device)
    set_default_meta(str(device).startswith("meta"))


def get_default_device() -> device:
    """Where this thread makes tensors where no device is asked for."""
    return META if default_is_meta() else CPU


def set_num_interop_threads(num_threads: int) -> None:
    """Changes nothing: operations run one after the other, each with `get_num_threads()`.

    Raises: TypeError for no int; RuntimeError for one that is not positive.
    """
    if isinstance(num_threads, bool) or not isinstance(num_threads, int):
        raise TypeError("set_num_interop_threads: expects an int, but got "
                        f"{type(num_threads).__name__}")
    if num_threads <= 0:
        raise RuntimeError("set_num_interop_threads: expects a positive number of threads, got "
                           f"{num_threads}")
    _kept["interop"] = num_threads


def get_num_interop_threads() -> int:
    """The number that `set_num_interop_threads` stored, at first 1."""
    return int(_kept["interop"])


def set_flush_denormal(mode: bool) -> bool:
    """False: numbers near zero are always computed in full."""
    return False


def set_warn_always(b: bool) -> None:
    """Stores a value without effect: `warnings.simplefilter` says how often warnings are shown."""
    _kept["always_warn"] = bool(b)


def is_warn_always_enabled() -> bool:
    """The value that `set_warn_always` stored."""
    return bool(_kept["always_warn"])
