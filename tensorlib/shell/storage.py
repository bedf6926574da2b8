"""`TypedStorage`: the memory of a tensor as a row of elements, PyTorch's older view of it."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from tensorlib import empty
from tensorlib._core.base.dtypes import dtype as DType
from tensorlib._core.tensor.properties import UntypedStorage
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.io.files import load

__all__ = ["TypedStorage", "UntypedStorage", "from_file", "storage"]


class TypedStorage:
    """The memory that a tensor and its views share, as elements of the tensor's dtype.

    `x.storage()` gives it. `untyped()` is the same memory as bytes.
    """

    def __init__(self, x: Tensor) -> None:
        count = x.untyped_storage().nbytes() // x.itemsize
        self._tensor, self._elements = x, x.detach().as_strided((count,), (1,), 0)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._tensor.dtype

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._tensor.device

    def untyped(self) -> Any:
        """The memory as bytes."""
        return self._tensor.untyped_storage()

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self.untyped().data_ptr()

    def nbytes(self) -> int:
        """How many bytes there are."""
        return self.untyped().nbytes()

    def element_size(self) -> int:
        """How many bytes an element has."""
        return self._tensor.itemsize

    def size(self) -> int:
        """How many elements there are."""
        return len(self)

    def tolist(self) -> list[Any]:
        """The elements as a list."""
        return self._elements.tolist()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()      # libraries sum up what models hold

    def __len__(self) -> int:
        return self._elements.shape[0]

    def __getitem__(self, place: int) -> Any:
        return self._elements[place].item()

    def __setitem__(self, place: int | slice, value: Any) -> None:
        self._elements[place] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __repr__(self) -> str:
        return f"<TypedStorage of {len(self)} elements of {self.dtype} on {self.device}>"


def storage(self: Tensor) -> TypedStorage:
    """The memory that this tensor and its views share, as elements: an older name.

    `untyped_storage` is the newer one, which has bytes.
    """
    return TypedStorage(self)


def from_file(filename: Any, shared: bool | None = None, size: int = 0, *,
              dtype: DType | None = None, layout: Any = None, device: Any = None,
              pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The first `size` elements of a file, in the order of bytes of this machine.

    They are read when they are used. shared: whether what is written to the tensor is written to
    the file, which is made as long as it has to be; else it stays in memory.
    Raises: RuntimeError for a file that has fewer bytes.

    >>> import numpy as np
    >>> np.arange(3, dtype=np.float32).tofile("numbers.bin")
    >>> tensorlib.from_file("numbers.bin", size=3)
    tensor([0., 1., 2.])
    """
    made = empty(0, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    held = UntypedStorage.from_file(filename, bool(shared), size * made.itemsize)
    return made.set_(held, 0, (size,)).requires_grad_(requires_grad)


def _load_from_bytes(b: bytes) -> Any:
    """The storage in a file of `torch.save`, as pickles of PyTorch's tensors have it."""
    return load(BytesIO(b))
