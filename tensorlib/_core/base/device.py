"""Devices: the CPU, and `meta`, where tensors have no elements. Other devices can be named only, so
that scripts can compare them."""

from typing import Any

from tensorlib._core.base.region import enter_device, leave_device

KINDS = ("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga",
         "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone")
DTYPES = ("bfloat", "bool", "complex", "float", "int", "uint")     # without their bits


class NoSuchDevice(RuntimeError, AssertionError):
    """A device does not exist. PyTorch raises either of the bases, depending on the device."""

    __module__ = "tensorlib"


class device:
    """A device: `device("cpu")`, or `device("meta")` for tensors without memory.

    Others can be named, but hold no tensors, so that programs can choose or compare devices, as in
    `device("cuda" if cuda.is_available() else "cpu")`. `with device("meta"):` makes it the default
    device of new tensors.
    Raises: RuntimeError for a name that is unknown to PyTorch too, TypeError for other values.
    """

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        if isinstance(type, device) and index is None:
            type, index = type.type, type.index
        if not isinstance(type, (str, int)) or isinstance(type, bool):
            raise TypeError(f"device: expected a name as 'cpu', got {type!r}")
        if isinstance(type, int):
            raise NoSuchDevice(f"device: {type} is the number of an accelerator, and there is none")
        kind, colon, number = type.partition(":")
        if kind not in KINDS:
            raise RuntimeError(f"device: expected one of {', '.join(KINDS)} at the start, got "
                               f"{type!r}" + (f"; the dtype is tensorlib.{type}" if
                                              type.rstrip("0123456789") in DTYPES else ""))
        if colon:
            if index is not None:
                raise RuntimeError(f"device: {type!r} has a number, and index={index} was given")
            if not (number.isascii() and number.isdecimal() and len(number) < 5) or (
                    number[0] == "0" != number):
                raise RuntimeError(f"device: expected a number after the colon, got {type!r}")
            index = int(number)
        if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
            raise TypeError(f"device: index must be an int, got {index!r}")
        if index is not None and index < 0:
            raise RuntimeError(f"device: index must be 0 or more, got {index}")
        self.type, self.index = kind, index

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + (
            ")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def _check(self, name: str) -> None:
        """Raises NoSuchDevice for the operation `name` unless tensors can be on the device."""
        if self.type not in ("cpu", "meta"):
            known = {"cuda": "CUDA", "xpu": "XPU", "mps": "MPS"}.get(self.type, self.type)
            raise NoSuchDevice(f"{name}: tensorlib is not compiled with {known} enabled: tensors "
                               f"are on 'cpu' or 'meta', got device {str(self)!r}")

    __enter__, __exit__ = enter_device, leave_device       # compiled: Ctrl-C comes before or after


def require_device(name, where):
    """Raises for the operation `name` unless `where`, a device or its name, is None or can hold
    tensors."""
    if where is None or where is CPU or where == "cpu" or where == "meta":
        return
    if not isinstance(where, (device, str, int)) or isinstance(where, bool):
        raise TypeError(f"{name}: device must be a device or its name, got {where!r}")
    try:
        found = device(where)
    except RuntimeError as error:
        raise type(error)(f"{name}: {error}") from None
    found._check(name)


def require_cpu(name, where):
    """Raises for the operation `name`, which needs memory, unless `where` is the CPU or None."""
    require_device(name, where)
    if where is not None and is_meta_device(where):
        raise NoSuchDevice(f"{name}: expected the device 'cpu', got 'meta'")


CPU = device()
META = device("meta")


def is_meta_device(name):
    """Whether a device, or its name, is `meta`. Raises: RuntimeError for an unknown one."""
    return name == "meta" or (name if isinstance(name, device) else device(name)).type == "meta"
