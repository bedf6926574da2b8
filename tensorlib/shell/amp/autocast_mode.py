"""`autocast`: products in a half type, what adds up in float32, by the record of each operation."""

from _thread import _local as local   # of `threading`, which an import is not worth
from collections.abc import Callable
from functools import wraps
from typing import Any

from tensorlib._core.base.warned import warn_of
from tensorlib._core.apply.halves import rounding
from tensorlib._core.base.device import device
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.settings import AttributeSwap, Held
from tensorlib._core.interpreters.foreign import is_tensor
from tensorlib._core.interpreters.stack import Interpreter
from tensorlib._core.sweep.sweep import sweep

FLOAT32, FLOAT64 = BY_NAME["float32"], BY_NAME["float64"]
HALVES = (BY_NAME["bfloat16"], BY_NAME["float16"])
# Families of operations that add up, or whose results overflow half types.
WIDE = ("tensorlib.ops.reduce.", "tensorlib.linalg.", *(
    f"tensorlib.nn.functional.{losses}" for losses in (
        "elementwise_losses", "likelihoods", "margins", "ctc", "adaptive", "distances")))
# Families that take a weight of another dtype than the input, which gives that of the result.
WEIGHTED = ("tensorlib.nn.functional.norms", "tensorlib.nn.functional.group_norms")
# Products whose kernels take no half types: operands and results are rounded to these.
ROUNDED = ("tensorlib.nn.functional.attention_tiles", "tensorlib.nn.functional.recurrent_steps")


class _State(local):
    """The innermost `autocast` of this thread for the CPU, or None."""

    innermost: Any = None


_state = _State()


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` of a device, named by its type, is not switched off with a warning."""
    return device(device_type).type == "cpu"


class autocast(Interpreter):
    """A context, or a decorator, of mixed precision: products and convolutions take half types.

    Their float32 tensors are cast to `dtype`. Sums and other reductions, losses and what
    `tensorlib.linalg` has take float32, and where float32 meets half types in another operation
    it is computed in float32; layers that normalise give the dtype of their input. Other
    operations keep their dtypes, as do float64 and forms that write (`out=`, `add_`). Backward
    sweeps have the dtypes of the forward pass.

    dtype: bfloat16, the default, or float16. enabled: False switches it off inside another.
    Raises: RuntimeError for a device that nobody knows, ValueError for what is not a string.

    >>> x = tensorlib.ones(2, 2)
    >>> with tensorlib.autocast("cpu"):
    ...     (x @ x).dtype, (x @ x).sum().dtype
    (tensorlib.bfloat16, tensorlib.float32)
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"autocast: device_type must be a string, got {device_type!r}")
        self.device = device(device_type).type
        if dtype is None:
            dtype = BY_NAME["bfloat16" if self.device == "cpu" else "float16"]
        if enabled and self.device != "cpu":
            warn_of(f"autocast: {self.device!r} is not available. Disabling.", level=2)
            enabled = False
        elif enabled and dtype not in HALVES:
            warn_of(f"autocast: takes bfloat16 and float16, got {dtype}. Disabling.", level=2)
            enabled = False
        self.fast_dtype = dtype
        self._enabled = enabled

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def under(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)
        return under

    # ---- as an interpreter ---------------------------------------------------------------------

    def settings(self) -> Any:
        """Makes it the innermost one of its thread, in compiled code."""
        return None if self.device != "cpu" else Held(
            (AttributeSwap(_state, "innermost"), AttributeSwap(rounding, "keeps"),
             AttributeSwap(rounding, "casts")), (self, self.keeps_float32, self._enabled))

    def again(self) -> "autocast":
        """One like it, for what is computed again after it has ended."""
        return autocast(self.device, self.fast_dtype, self._enabled)

    def call(self, op: Any, args: Any, kwargs: Any) -> Any:
        """What an operation gives for tensors of the dtype that it is computed in."""
        cast = self.cast(op, args, kwargs)
        if cast is args or op.multiplications is None or op.family not in ROUNDED:
            return self.below(op, cast, kwargs)
        result = self.below(op, tuple([in_dtype(x, FLOAT32) for x in cast]), kwargs)
        return in_dtype(result, self.fast_dtype)

    def sweep(self, roots: Any, grads: Any, **options: Any) -> Any:
        """Its operations are left as they are, in the dtypes that the forward pass gave them."""
        with Held((AttributeSwap(rounding, "keeps"),), (None,)):
            return sweep(roots, grads, **options)

    def keeps_float32(self, function: Any) -> bool:
        """Whether a function made of operations, which computes half types in float32, leaves its
        result so."""
        return self._enabled and function.__module__.startswith(WIDE)

    def cast(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments, those that are tensors in the dtype of the operation."""
        if _state.innermost is not self or not self._enabled or kwargs.get("out") is not None:
            return args
        dtypes = {x.dtype for x in flattened(args) if is_tensor(x) and x.is_floating_point()}
        if FLOAT64 in dtypes or not dtypes:
            return args
        if op.multiplications is not None:
            target = self.fast_dtype
        elif op.family.startswith(WIDE) or (
                len(dtypes) > 1 and not op.family.startswith(WEIGHTED)):
            target = FLOAT32
        else:
            return args
        return args if dtypes == {target} else tuple([in_dtype(x, target) for x in args])


def flattened(args: tuple[Any, ...]) -> list[Any]:
    """Arguments, and what those that are sequences hold."""
    return [x for part in args for x in (part if isinstance(part, (tuple, list)) else (part,))]


def in_dtype(value: Any, dtype: Any) -> Any:
    """A tensor of floats, or those in a sequence, in a dtype; anything else as it is."""
    if isinstance(value, (tuple, list)):
        parts = [in_dtype(x, dtype) for x in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value.to(dtype) if is_tensor(value) and value.is_floating_point() else value


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether this thread is under an `autocast` for a device, named by its type."""
    return device(device_type).type == "cpu" and (
        _state.innermost is not None and _state.innermost._enabled)


def get_autocast_dtype(device_type: str) -> Any:
    """The dtype that the innermost `autocast` for a device asked for, or its default."""
    if device(device_type).type != "cpu":
        return BY_NAME["float16"]
    return BY_NAME["bfloat16"] if _state.innermost is None else _state.innermost.fast_dtype


# ---- older names, which checkpoints of other libraries ask for -----------------------------------

def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`, under its older name."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Any:
    """`get_autocast_dtype("cpu")`, under its older name."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """`get_autocast_dtype("cuda")`, under its older name."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """True, as in PyTorch. There is no cache: a weight is cast by each operation."""
    return True


def clear_autocast_cache() -> None:
    """Changes nothing: there is no cache."""
