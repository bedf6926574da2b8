"""Names that older scripts call, and what only makes sense beside other devices."""

import numpy as np

from tensorlib._core.base.device import NoSuchDevice, require_device
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, composite
from tensorlib.ops.late import declared
from tensorlib.ops.publish import attach_checked
from tensorlib.ops.samples import given, refusals

TYPES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
         "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
         "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "bool": "Bool"}
BY_TYPE = {f"{kind}Tensor": name for name, kind in TYPES.items()}


# ---- filled --------------------------------------------------------------------------------------

@composite(tensors=("input",), method=False, reference=lambda x, value: np.full_like(x, value),
           samples=given(((2, 3), 2), ((), 1), ((0, 2), 3)),
           errors=refusals((RuntimeError, (2,), np.ones(2))))
def fill(input: Tensor, value):
    """A copy of `input` whose elements are all `value`, a number or a tensor without dims.

    Gradient: of `value`. Raises: RuntimeError for a tensor with dims.

    >>> tensorlib.fill(tensorlib.ones(2), 3)
    tensor([3., 3.])
    """
    return input.clone().fill_(value)


# ---- element by element in Python ----------------------------------------------------------------

def apply_(self, callable):
    """This tensor, after each element x became callable(x), a number. It is slow.

    Raises: RuntimeError for a tensor that requires a gradient, TypeError.
    """
    return written("apply_", self, [callable(x) for x in elements("apply_", self)])


def map_(self, tensor: Tensor, callable):
    """This tensor, after each element x became callable(x, y) for the element y of `tensor`.

    Raises: RuntimeError for a tensor that requires a gradient or does not expand, TypeError for
    another dtype.
    """
    if tensor.dtype != self.dtype:
        raise TypeError(f"map_: tensor must be of dtype {self.dtype}, got {tensor.dtype}")
    others = elements("map_", tensor.detach().expand(self.shape))
    return written("map_", self, [callable(*pair) for pair in zip(elements("map_", self), others)])


def elements(name, x):
    """The elements of a tensor as a list. Raises: RuntimeError in a graph."""
    if x.requires_grad:
        raise RuntimeError(f"{name}: the tensor requires a gradient, which Python's functions do "
                           f"not have; call it on x.detach()")
    return x.flatten().tolist()


def written(name, x, values):
    """The tensor, after these numbers became its elements."""
    made = FUNCTIONS["tensor"](values, dtype=x.dtype) if values else x.new_empty(0)
    if made.ndim != 1:
        raise TypeError(f"{name}: the callable must return a number")
    return x.copy_(made.reshape(x.shape))


# ---- types and devices ---------------------------------------------------------------------------

def type_(self, dtype=None, non_blocking=False):
    """The name of this kind of tensor, as "tensorlib.FloatTensor"; or the tensor in a dtype.

    dtype: a dtype, such a name, or `LongTensor` and its kin. Raises: ValueError for an unknown
    name, RuntimeError for that of another device.
    """
    if dtype is None:
        return f"tensorlib.{TYPES[self.dtype.name]}Tensor"
    if isinstance(dtype, str):
        module, _, kind = dtype.rpartition(".")
        name = BY_TYPE.get(kind)
        if name is None:
            raise ValueError(f"type: invalid type: {dtype!r}")
        require_device("type", module.partition(".")[2] or None)
        dtype = BY_NAME[name]
    return self.to(dtype=getattr(dtype, "dtype", dtype) if isinstance(dtype, type) else dtype)


def new(self, *args):
    """A tensor of this one's dtype: of the data of a sequence, or not initialized, of sizes."""
    if len(args) == 1 and isinstance(args[0], (list, tuple, np.ndarray, Tensor)) and not (
            type(args[0]).__name__ == "Size"):
        return self.new_tensor(args[0])
    return self.new_empty(*args) if args else self.new_empty(0)


def ndimension(self):
    """The number of dims."""
    return self.ndim


def is_pinned(self, device=None):
    """False: memory is pinned for other devices."""
    return False


def pin_memory(self, device=None):
    """The tensor itself: memory is pinned for other devices, of which there are none."""
    return self


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """Raises RuntimeError: there is no GPU to copy the tensor to."""
    require_device("cuda", "cuda" if device is None else device)
    raise NoSuchDevice(f"cuda: {device!r} is no GPU")


def xpu(self, device=None, non_blocking=False, memory_format=None):
    """Raises RuntimeError: there is no GPU to copy the tensor to."""
    require_device("xpu", "xpu" if device is None else device)
    raise NoSuchDevice(f"xpu: {device!r} is no GPU")


for _method in (apply_, map_, new, ndimension, is_pinned, pin_memory, cuda, xpu):
    attach_checked(_method.__name__, _method)
attach_checked("type", type_)

declared(__name__)
