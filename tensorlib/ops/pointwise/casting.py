"""Conversions between dtypes and the methods named after them."""

import numpy as np

from tensorlib._core.apply.converted import cast_at_once
from tensorlib._core.base.device import META, device as device_type, require_device
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.formats import (
    RANKS, check_rank, contiguous_format, preserve_format,
)
from tensorlib._core.base.warned import warn_of
from tensorlib._core.layout import reinterpret, views
from tensorlib._core.tensor.meta import NoData
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, op, publish
from tensorlib.ops.samples import given, refusals
from tensorlib.ops.shape.parts import real_of


class ComplexWarning(UserWarning, np.exceptions.ComplexWarning):
    """A cast that loses imaginary parts: PyTorch's warning for it, and NumPy's."""


def target_dtype(self: Tensor, *args, dtype=None, device=None, copy=False, non_blocking=False,
                 memory_format=None, other=None):
    """The `convert` of `to`, which takes a dtype, another tensor, the device and `copy`."""
    if memory_format is not None:
        return [to_format, self, args, memory_format, dtype, device, copy, other]
    if other is not None:
        if not isinstance(other, Tensor):
            raise TypeError(f"to: other must be a Tensor, not {type_name(other)}")
        dtype, device = other.dtype, other.device
    flags = [arg for arg in args if isinstance(arg, bool)]        # non_blocking, then copy
    if len(flags) > 1:
        copy = copy or flags[1]
    for arg in args:
        if isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, (str, int, device_type)) and not isinstance(arg, bool):
            device = arg
        elif arg is not None and not isinstance(arg, bool):
            dtype = arg
    require_device("to", device)
    dtype = self.dtype if dtype is None else dtype
    if device is not None and device_type(device).type != self.device.type:
        return [to_device, self, dtype, device]
    return self, dtype, copy


target_dtype.at_once = cast_at_once


def in_format(name, x, memory_format):
    """A result in the memory format that was asked for. Raises: RuntimeError for another."""
    check_format(name, memory_format)
    if memory_format not in RANKS:
        return x.contiguous() if memory_format is contiguous_format else x
    check_rank(name, x.ndim, memory_format)
    if x.is_contiguous(memory_format=memory_format):
        return x
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def check_format(name, memory_format):
    """Raises RuntimeError for what is no memory format."""
    if memory_format not in (None, preserve_format, contiguous_format, *RANKS):
        raise RuntimeError(f"{name}: memory_format must be one of preserve_format, "
                           "contiguous_format, channels_last and channels_last_3d, got "
                           f"{memory_format!r}")


def to_device(self, dtype, device):
    """What `to` gives on another device: a tensor laid out as this one, outside of the graph."""
    if self.device == META:
        raise NoData("to: cannot copy out of meta tensor: it has no elements; "
                     "empty_like(x, device='cpu') makes one with memory")
    return FUNCTIONS["empty_like"](self, dtype=dtype, device=device)


def to_format(self, args, memory_format, dtype, device, copy, other):
    """What `to` gives for a memory format."""
    return in_format("to", self.to(*args, dtype=dtype, device=device, copy=copy, other=other),
                     memory_format)


@op(linear=True, public=False, convert=target_dtype,
    reference=lambda x, dtype: x.astype(dtype.name),
    result_dtype=lambda x, dtype: dtype,
    samples=given(((2, 3), BY_NAME["float64"]), ((), BY_NAME["int64"]), ((4,), BY_NAME["bool"])),
    view="maybe")
def to(input: Tensor, dtype, copy=False):
    """The tensor as another dtype: `to(dtype)`, `to(other)`, `to("cpu")`, `to("meta")`,
    `to("cpu", dtype)`.

    The tensor itself if nothing changes, unless `copy`. Raises: RuntimeError for other devices,
    TypeError for what is not a dtype.
    """
    out = views.to_dtype(input, dtype, copy)
    if input.is_complex() and not out.is_complex() and out.dtype.name != "bool":
        warn_of("to: casting complex values to real discards the imaginary part; x.real is a view "
                "of the other one", ComplexWarning, 2)
    return out


cast = to.canonical


@to.vjp("input")
def to_vjp(g, input_dtype):
    """A real tensor gets the real part, which loses nothing that it could have."""
    return cast(g if input_dtype.is_complex else real_of(g), input_dtype)


def type_method(name, target, doc):
    """Publishes the method that converts to one dtype."""
    def method(self, memory_format=None):
        x = cast(self, target)
        return x if memory_format is None else in_format(name, x, memory_format)
    method.checks = True                     # `cast` does
    publish(name, method, doc, public=False)


for _name, _target in {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "int": "int32", "long": "int64", "short": "int16", "char": "int8", "byte": "uint8",
    "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}.items():
    type_method(_name, BY_NAME[_target], f"The elements as {_target}.")


def bytes_under(x, dtype):
    """The reference of `view_dtype` for float32."""
    return x.astype("float32").view(dtype.name)


def viewed_samples(rng):
    """Arrays, and a dtype whose elements are as large as theirs, so that any layout will do."""
    for shape in ((2, 4), (3,), (0, 2)):
        yield (rng.uniform(-3, 3, shape),), {"dtype": BY_NAME["int32"]}


@op(view=True, differentiable=False, public=False, method=False, reference=bytes_under,
    dtypes=("float32",), samples=viewed_samples,
    errors=refusals((RuntimeError, (), BY_NAME["int8"]), (TypeError, (2, 3), "int8")))
def view_dtype(input: Tensor, dtype):
    """The memory of `input` as elements of another dtype, as `x.view(dtype)`, without a gradient.

    Writes into either are seen in the other. The last dim becomes longer for smaller elements and
    shorter for larger ones; its elements must lie side by side.
    Shapes: (*, N) -> (*, N old / new bytes).
    Raises: RuntimeError where the memory can't be cut so, TypeError for what is not a dtype.

    >>> tensorlib.tensor([1.0, -2.0]).view(tensorlib.int32)
    tensor([ 1065353216, -1073741824], dtype=tensorlib.int32)
    """
    return reinterpret.view_dtype(input, dtype)


def type_as(self, other: Tensor):
    """The elements as the dtype of `other`."""
    return cast(self, other.dtype)


def cpu(self, memory_format=None):
    """The tensor itself, which is on the CPU; in another layout a copy.

    Raises: NotImplementedError for one on `meta`, TypeError.
    """
    return self.to("cpu") if memory_format is None else self.to("cpu", memory_format=memory_format)


for _function in (type_as, cpu):
    publish(_function.__name__, _function, _function.__doc__, public=False)
