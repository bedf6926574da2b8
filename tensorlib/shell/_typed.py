"""`FloatTensor`, `LongTensor` and the like: older names for tensors of one dtype on the CPU.

They make tensors of sizes or of data, and `isinstance(x, LongTensor)` asks for the dtype. Tensors
themselves have one type, `Tensor`.
"""

from typing import Any

from tensorlib._core.base.device import require_cpu
from tensorlib._core.base.dtypes import BY_NAME, set_default_dtype
from tensorlib._core.tensor.tensor import Tensor


class TensorKind(type):
    """The type of `FloatTensor` and the like."""

    dtype: Any

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        """A tensor of this dtype: of sizes, not initialized, or of a sequence or an array; or a
        view of a tensor.

        Raises: TypeError for a number that is not a size and for a tensor of another dtype.
        """
        require_cpu(cls.__name__, device)
        if len(data) == 1 and isinstance(data[0], Tensor) and data[0].dtype != cls.dtype:
            raise TypeError(f"{cls.__name__}: expected a tensor of {cls.dtype}, got one of "
                            f"{data[0].dtype}; x.to({cls.dtype}) converts it")
        if len(data) == 1 and isinstance(data[0], Tensor):
            return Tensor(data[0])
        return Tensor(*data, dtype=cls.dtype)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Tensor) and x.dtype == cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'tensorlib.{cls.__name__}'>"


def _kind(name: str, dtype: str) -> TensorKind:
    doc = f"Tensors of {dtype}: `tensorlib.tensor(data, dtype=tensorlib.{dtype})` makes one."
    made = TensorKind(name, (), {"__module__": "tensorlib", "__doc__": doc, "__slots__": ()})
    made.dtype = BY_NAME[dtype]
    return made


FloatTensor = _kind("FloatTensor", "float32")
DoubleTensor = _kind("DoubleTensor", "float64")
HalfTensor = _kind("HalfTensor", "float16")
BFloat16Tensor = _kind("BFloat16Tensor", "bfloat16")
ByteTensor = _kind("ByteTensor", "uint8")
CharTensor = _kind("CharTensor", "int8")
ShortTensor = _kind("ShortTensor", "int16")
IntTensor = _kind("IntTensor", "int32")
LongTensor = _kind("LongTensor", "int64")
BoolTensor = _kind("BoolTensor", "bool")
KINDS = {kind.__name__: kind for kind in (
    FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, ByteTensor, CharTensor, ShortTensor,
    IntTensor, LongTensor, BoolTensor)}


def set_default_tensor_type(t: TensorKind | str) -> None:
    """Sets the floating dtype of new tensors by a kind of tensor, or its name: an older way.

    `set_default_dtype` is the newer one.
    Raises: TypeError for a kind that is not floating, or that is not there.

    >>> tensorlib.set_default_tensor_type(tensorlib.FloatTensor)
    """
    kind: object = t
    if isinstance(t, str):
        module, _, name = t.rpartition(".")
        if module not in ("torch", "tensorlib") or name not in KINDS:
            raise TypeError(f"set_default_tensor_type: type {t} not available; expected one of "
                            f"{', '.join(KINDS)}")
        kind = KINDS[name]
    if not isinstance(kind, TensorKind) or not kind.dtype.is_floating_point:
        raise TypeError("set_default_tensor_type: only floating-point types are supported as the "
                        f"default type, got {t!r}")
    set_default_dtype(kind.dtype)
